"""What drives an audit, put together from its options: its belief, its loop, and their parts."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..journal.facts import CertificateFacts, Facts
from ..journal.prior import read_prior
from ..models.base import ConcurrentModel, ModelDefaults
from ..oracles.paired import Paired
from ..space import QuestionSpace
from ..strategies.by_need import ByNeed, needs_targets
from ..surrogates import QUESTION_GP, REGISTRY, Named, named
from ..types import CallMode, Floats, Indices, JsonObject
from ..utils.random_streams import generator
from ..utils.threads import one_thread
from .audit_key import GIVEN, Origin, is_custom, seed_for
from .belief import Belief
from .budget import Budget, Judged
from .call_queue import CallQueue, SourceQueue
from .candidates import columns
from .checkpoints import Checkpoints
from .draw_order import Blocks, DrawOrder
from .judge import Judge
from .judging import Judging
from .loop import Loop, Stopwatch
from .options import DEFAULT_TARGETS, Certify, Limits, Sampling
from .prices import Prices
from .proxies import Proxies, Renderings
from .repeat_probes import RepeatProbes
from .selector import Selector
from .settings import check_budget, currency_paid, describe_settings, questions_per_call
from .tensors import array, candidates_of, hashed

if TYPE_CHECKING:
    from ..models.local.self_taught import SelfTaught
    from ..surrogates import LossSurrogate
    from ..surrogates.features import FollowUpFeatures
    from .priors import CohortLosses, WarmStart

MAX_HASHED = 1_000_000
"""Samples whose metadata the audit's key follows from, at most, evenly spread."""
REFERENCE = 500
"""Questions by whose images principal components of follow-ups are computed, and whose losses are
foreseen for the bets; they are looked at once."""
MAX_PIXELS = 500_000_000
"""Pixels of all follow-ups together, above which none is taught by default and the question GP
does not look at them: rendering them takes some 0.1 s per million."""


InOrder = Callable[[Judge, Belief, Certify, Sampling], tuple[Selector, DrawOrder]]


@dataclass(frozen=True)
class Assembled:
    """What an audit is made of: its ``loop``, and ``judging``, one of the loop's hooks.

    ``settings``: what the journal says of it; ``origin``: what its random choices follow from.
    """

    loop: Loop
    judging: Judging
    settings: JsonObject
    origin: Origin
    proxies: Proxies


@one_thread()
def assembled(
    space: QuestionSpace,
    model: ModelDefaults,
    certify: Certify,
    sampling: Sampling,
    limits: Limits,
    *,
    facts: Facts | None,
    device: str,
    watch: Stopwatch,
    in_order: InOrder | None = None,
) -> Assembled:
    """The loop of an audit that has asked nothing yet, or goes on with a journal of ``facts``.
    ``in_order``: what gives its calls in place of draws, and takes in their answers.

    Raises InputError for options that do not fit.
    """
    exploration = sampling.share(certify.certifies)
    chosen = sampling.chosen(certify.certifies)
    if isinstance(chosen.strategy, ByNeed) and not certify.certifies:
        raise needs_targets()
    renderings: Renderings = space.shared.setdefault("renderings", Renderings(space))
    earlier = warm_start(certify, space, model.answers, renderings, device)
    net = taught(certify, space, facts, model.check_key)
    cohort = cohort_losses(certify, space, model.answers, renderings, device, facts)
    given = certify.proxies or {}
    proxies = Proxies(space, given, earlier, net, renderings, cohort)
    by_price = sampling.by_price and isinstance(chosen.strategy, ByNeed)
    prices = Prices.of(space, model, by_price, facts)
    settings = describe_settings(
        space,
        model,
        sampling,
        chosen,
        seed=seed_for(sampling.seed, facts),
        exploration=exploration,
        surrogate=surrogate_in_journal(certify),
        proxies=proxies.names,
        **({} if prices is None else {"prices": prices.facts}),
    )
    code = (chosen.strategy, *space.oracle.code, *(v.relation for v in space.variants))
    origin = Origin.of(
        facts,
        model,
        proxies.prior_keys,
        certify.goal(),
        None if sampling.replay is None else sampling.replay.facts,
        custom=surrogate_is_custom(certify)
        or any(is_custom(part) for part in code if part is not None)
        or proxies.untold,
        features=features_used(space),
        metadata=metadata_used(space),
        weights=certify.weights,
        settings=settings,
        space=space.fingerprint,
        plan=certify.meaning(),
        proxies=proxies.content,
    )
    belief = fresh_belief(
        certify,
        space,
        model.answers,
        seed=origin.key,
        device=device,
        proxies=proxies,
        begun=None if facts is None else facts.certificate,
        even=not isinstance(chosen.strategy, ByNeed),
        form=sampling.form,
        history=sampling.history,
        prices=prices,
    )
    judge = Judge(space, model.answers, keep_masks=sampling.keep_masks)
    queue = CallQueue()
    checkpoints = Checkpoints(belief, origin.key)
    if in_order is not None:
        selector, draw_order = in_order(judge, belief, certify, sampling)
    else:
        selector = Selector(
            space,
            chosen.strategy,
            seed=origin.key,
            exploration=exploration,
            candidates=sampling.candidates,
            answers=model.answers,
            belief=belief,
            replay=sampling.replay,
        )
        both = certify.unanswered == "both"
        draw_order = DrawOrder(selector, both, Blocks.of(model), checkpoints.learnt)
    probes = RepeatProbes(origin.key, sampling.repeat_probes, judge, queue, draw_order)
    by = space.oracle.judge_by
    judged = None if by is None else Judged(by.model, questions_per_call(space, model.answers))
    currency = currency_paid(model, None if by is None else by.model, facts)
    budget = Budget(model, limits.max_cost, judged, currency)
    loop = Loop(
        selector,
        judge,
        queue,
        draw_order,
        budget,
        SourceQueue(judge.sources, queue, belief.sources),
        probes,
        limits.rules(certify.rule(), currency),
        watch,
        waits=not isinstance(model, ConcurrentModel),
    )
    check_budget(limits.budget, loop.next_calls)
    judging = Judging(judge, queue, budget, origin.key)
    loop.hooks += [judging, probes] if in_order else [checkpoints, judging, probes]
    return Assembled(loop, judging, settings, origin, proxies)


def suited(certify: Certify, space: QuestionSpace) -> Certify:
    """What is certified of a space where the user left it open: of one without concepts its first
    kind of target; and nothing is foretold of losses by which nobody knows what is alike."""
    known = [certify.proxies, certify.prior_journal, certify.cohort, space.dataset.features]
    if space.oracle.tells_losses and all(each is None for each in known):
        certify = replace(certify, surrogate=False)
    if certify.targets is not DEFAULT_TARGETS or "concepts" in space.kinds:
        return certify
    return replace(certify, targets=space.kinds[:1])


def taught(
    certify: Certify, space: QuestionSpace, facts: Facts | None, check: Callable[[], None]
) -> "SelfTaught | None":
    """The self-taught proxy of an audit that goes on with ``facts``; None where it is not wanted,
    or "auto" finds that it does not suit.

    The nets' seed is the dataset's fingerprint: what follows from images and labels alone knows
    nothing of any draw, and every audit of a space is helped alike. ``check`` is called before
    they learn, which takes seconds.
    """
    wanted = certify.self_taught
    if wanted is False or not certify.certifies or certify.surrogate is False:
        return None
    if wanted == "auto" and not _suits(space, facts):
        return None
    if not _judged_by_label(space):
        masks = " (nets that were taught with masks have saved no calls)"
        raise InputError(
            "self_taught: expected an oracle that judges answers by labels (correctness, "
            f"top-class), got {type(space.oracle).__name__}"
            f"{masks if space.oracle.judges_masks else ''}; leave self_taught at 'auto'"
        )
    from ..models.local.self_taught import SelfTaught

    nets: SelfTaught | None = space.shared.get("nets")
    if nets is None:
        check()
        nets = SelfTaught.of(space.dataset, seed=space.dataset.fingerprint)
    return space.shared.setdefault("nets", nets)


def _suits(space: QuestionSpace, facts: Facts | None) -> bool:
    """What "auto" is: where a journal is gone on with, what was done there."""
    if facts is not None:
        return facts.self_taught is not None
    dataset = space.dataset
    if not dataset.has_images or _pixels(space) > MAX_PIXELS:
        return False
    if not _judged_by_label(space):
        return False
    from ..models.local.self_taught import teachable

    return teachable(dataset)


def _judged_by_label(space: QuestionSpace) -> bool:
    # Of pairs, nets would foretell the answers, not the difference.
    by_label = space.oracle.concepts_are in ("labels", "classes")
    return by_label and not isinstance(space.oracle, Paired)


def _pixels(space: QuestionSpace) -> int:
    """Of all follow-ups, if all are as large as the first source image."""
    height, width, _ = space.dataset.sample(0).require_image().shape
    return space.images * height * width


def warm_start(
    certify: Certify, space: QuestionSpace, answers: CallMode, renderings: Renderings, device: str
) -> "WarmStart | None":
    """What the prior journal foretells; None where there is none.

    Its surrogate is the question GP, whatever predicts this audit's losses, and follows from the
    space and that journal alone.
    """
    if certify.prior_journal is None:
        return None
    from .priors import WarmStart

    make = _of_earlier(space, answers, renderings, device)
    return WarmStart(read_prior(certify.prior_journal), space, make)


def cohort_losses(
    certify: Certify,
    space: QuestionSpace,
    answers: CallMode,
    renderings: Renderings,
    device: str,
    facts: Facts | None,
) -> "CohortLosses | None":
    """Return the cohort's prior for an audit resumed with ``facts``; None where there is none, or
    nothing is certified, which predictions serve."""
    if certify.cohort is None or not certify.certifies or certify.surrogate is False:
        return None
    from .priors import CohortLosses

    make = _of_earlier(space, answers, renderings, device)
    return CohortLosses(certify.cohort, space, make, facts)


def _of_earlier(
    space: QuestionSpace, answers: CallMode, renderings: Renderings, device: str
) -> "Callable[[], LossSurrogate]":
    """What makes the question GP of an earlier audit's answers."""
    gp = named(QUESTION_GP)
    return partial(_losses, gp, space, answers, renderings, space.fingerprint, device)


def fresh_belief(
    certify: Certify,
    space: QuestionSpace,
    answers: CallMode,
    *,
    seed: int | str,
    device: str,
    proxies: Proxies,
    begun: CertificateFacts | None = None,
    even: bool = False,
    **readings: Any,
) -> Belief:
    """The belief of an audit that has asked nothing yet, with certifier and surrogate of losses
    where targets are certified.

    ``seed``: the audit's key; ``begun``, ``even``: see ``Certify.certifier``.
    ``readings`` are Belief's ``form`` and ``history``.
    """
    certifier = certify.certifier(space, answers, begun, even=even)
    if certifier is None:
        return Belief(space, seed=seed, device=device, **readings)
    losses = None
    if certify.surrogate is not False:
        usual = _drop_gp() if certify.drops else named(QUESTION_GP)
        chosen = usual if certify.surrogate is True else named(certify.surrogate)
        losses = _losses(
            chosen,
            space,
            answers,
            proxies.renderings,
            seed,
            device,
            proxies if proxies.names else None,
            proxies.cohort,
        )
        if begun is None and not certify.of_two:
            questions = _reference(space, seed)
            foreseen = _foreseen(space, losses, proxies, questions)
            if foreseen is not None:
                certifier.set_theta(questions, foreseen)
    return Belief(space, seed=seed, device=device, losses=losses, certifier=certifier, **readings)


def _drop_gp() -> Named:
    from ..surrogates.difference_gp import DropGP  # imports PyTorch

    return Named("drop-gp", DropGP)


def _foreseen(
    space: QuestionSpace, losses: "LossSurrogate", proxies: Proxies, questions: Indices
) -> Floats | None:
    """Return the losses (n,) that are foreseen of ``questions`` before any answer, None where
    nothing is known: by itself the question GP expects 1/2 of each."""
    table = columns(space, questions)
    if proxies.cohort is None:
        return proxies.foreseen(questions, table[-1])
    unit = np.arange(len(questions))
    return array(losses.posterior(candidates_of((*table, unit, questions))).mean)


def surrogate_in_journal(certify: Certify) -> bool | str | JsonObject:
    """What the setting is called: the name of a surrogate, True for the question GP; with its
    options where some are given."""
    if isinstance(certify.surrogate, bool):
        return certify.surrogate
    chosen = named(certify.surrogate)
    if chosen.options:
        return {"name": chosen.name, "options": dict(chosen.options)}
    return chosen.name == QUESTION_GP or chosen.name


def surrogate_is_custom(certify: Certify) -> bool:
    """Whether losses are predicted by code from outside this package."""
    chosen = certify.surrogate
    return not isinstance(chosen, bool) and is_custom(named(chosen).make)


def features_used(space: QuestionSpace) -> str:
    """What shows a surrogate which source images are alike, for the journal: a hash of the features
    that the dataset brings, "thumbnails", or "truths" alone where images are not looked at."""
    given = space.dataset.features
    if given is not None:
        return GIVEN + hashed(np.asarray(given, np.float64))[:16]
    if not space.dataset.has_images:
        return "truths"
    from ..surrogates.features import MAX_IMAGES

    looks = len(space.dataset) <= MAX_IMAGES
    return "thumbnails" if looks else "truths"


def metadata_used(space: QuestionSpace) -> str | None:
    """A hash of the dataset's metadata, None where it has none: targets are chosen by it, slices
    whenever somebody looks for them, and it may be the result of an earlier audit."""
    dataset = space.dataset
    if not dataset.metadata_columns:
        return None
    samples = np.linspace(0, len(dataset) - 1, min(len(dataset), MAX_HASHED)).astype(np.int64)
    rows = np.ascontiguousarray(dataset.profile_row(samples))
    digest = hashlib.blake2b(rows.tobytes(), digest_size=8)
    for column in dataset.metadata_columns:
        digest.update(repr((column, dataset.metadata_values(column).tolist())).encode())
    return digest.hexdigest()


def features_changed(space: QuestionSpace, facts: Facts) -> dict[str, bool]:
    """For a journal that is gone on with: whether its draws ever went by other features."""
    return {"features_changed": facts.features_changed or facts.features != features_used(space)}


def _losses(
    chosen: Named,
    space: QuestionSpace,
    answers: CallMode,
    renderings: Renderings,
    seed: int | str,
    device: str,
    proxies: Proxies | None = None,
    cohort: "CohortLosses | None" = None,
) -> "LossSurrogate":
    """The surrogate of losses, made for this space; see ``surrogates.QuestionGP``."""
    from ..surrogates.features import same_truths, sample_features

    relations = list(dict.fromkeys(v.relation.name for v in space.variants))
    arguments = {
        "relation": [relations.index(v.relation.name) for v in space.variants],
        "severity": [v.severity for v in space.variants],
        "concepts": len(space.concepts),
        "shared": answers == "all",
        "features": sample_features(space.dataset, seed=seed),
        "truths": same_truths(space.dataset),
        "follow_ups": _follow_ups(space, renderings, seed),
        "proxies": proxies,
        "device": device,
        **({} if cohort is None else {"cohort": cohort}),
    }
    for name in chosen.options.keys() & arguments.keys():
        raise InputError(
            f"surrogate {chosen.name!r}: expected options other than those of the audit itself, "
            f"got {name!r}; leave it out"
        )
    made = REGISTRY.called(chosen.make, chosen.name, {**arguments, **chosen.options})
    surrogate: LossSurrogate = REGISTRY.checked(made, chosen.name)
    return surrogate


def _follow_ups(
    space: QuestionSpace, renderings: Renderings, seed: int | str
) -> "FollowUpFeatures | None":
    """What a surrogate is to know of follow-up images: nothing, where it would take long."""
    if not renderings.available or _pixels(space) > MAX_PIXELS:
        return None
    from ..surrogates.features import FollowUpFeatures

    images = space.total // len(space.concepts)
    reference = np.unique(space.image_of(_reference(space, seed)))
    variants = len(space.variants)
    return FollowUpFeatures(renderings.thumbnails, reference, images=images, variants=variants)


def _reference(space: QuestionSpace, seed: int | str) -> Indices:
    """Questions drawn evenly from the space, which are looked at before any draw."""
    return space.nth(generator(seed, "follow-ups").integers(space.size, size=REFERENCE))
