"""Predictors of an audit's losses: its surrogate, nets taught with its images, earlier audits."""

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..journal.facts import CertificateFacts, Facts
from ..journal.prior import read_prior
from ..models.base import ModelDefaults
from ..oracles.paired import Paired
from ..space import QuestionSpace
from ..surrogates import QUESTION_GP, REGISTRY, Named, named
from ..types import CallMode, Indices, JsonObject
from ..utils.random_streams import generator
from .belief import Belief, posterior_of
from .candidates import columns
from .options import Certify
from .proxies import Proxies, Renderings
from .tensors import array, candidates_of

if TYPE_CHECKING:
    from ..models.local.self_taught import SelfTaught
    from ..surrogates import LossSurrogate
    from ..surrogates.features import FollowUpFeatures

REFERENCE = 500
"""Questions that are looked at once, before any draw: principal components of follow-ups are
computed from their images, and their predicted losses set what bets on larger rates weigh."""
MAX_PIXELS = 500_000_000
"""Most pixels of all follow-ups together at which nets are trained by default and the question GP
looks at follow-ups: rendering takes some 0.1 s per million."""


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
    """Return the belief before any answer, with a certifier and a surrogate if there are targets.

    Args:
        certify: What is certified.
        space: All questions.
        answers: "one" where a call is one question, "all" where it is one image.
        seed: The audit's key.
        device: Where surrogates compute, as PyTorch names it.
        proxies: Cheaper predictions of losses.
        begun: The certificate of the journal that is resumed (``Certify.certifier``).
        even: True if targets share alpha evenly by default (``Certify.certifier``).
        **readings: ``form``, ``history`` and ``prices`` of ``Belief``.
    """
    certifier = certify.certifier(space, answers, begun, even=even)
    if certifier is None:
        return Belief(space, seed=seed, device=device, **readings)
    losses = None
    if certify.surrogate is not False:
        if not isinstance(certify.surrogate, bool):
            chosen = named(certify.surrogate)
        elif certify.drops:
            from ..surrogates.difference_gp import DropGP  # imports PyTorch

            chosen = Named("drop-gp", DropGP)
        else:
            chosen = named(QUESTION_GP)
        losses = _surrogate(chosen, space, answers, proxies.renderings, seed, device, proxies)
        if begun is None and not certify.of_two:
            questions = _reference(space, seed)
            table = columns(space, questions)
            if proxies.cohort is None:  # a GP without answers would predict 1/2
                predicted = proxies.predicted(questions, table[-1])
            else:
                known = candidates_of((*table, np.arange(len(questions)), questions))
                predicted = array(posterior_of(losses, known).mean)
            if predicted is not None:
                certifier.set_theta(questions, predicted)
    return Belief(space, seed=seed, device=device, losses=losses, certifier=certifier, **readings)


def surrogate_in_journal(certify: Certify) -> bool | str | JsonObject:
    """Return the setting as the journal has it: True for the question GP, False, or a name.

    A surrogate with options is a dict of "name" and "options".
    """
    if isinstance(certify.surrogate, bool):
        return certify.surrogate
    chosen = named(certify.surrogate)
    if chosen.options:
        return {"name": chosen.name, "options": dict(chosen.options)}
    return chosen.name == QUESTION_GP or chosen.name


def proxies_of(
    certify: Certify, space: QuestionSpace, model: ModelDefaults, facts: Facts | None, device: str
) -> Proxies:
    """Return the audit's proxies: those of the user, an earlier audit, nets, and a cohort.

    Earlier answers are learnt by the question GP, whatever surrogate this audit has, so that its
    predictions depend on the space and on those answers alone.

    Args:
        certify: Names the proxies, the prior journal and the cohort.
        space: All questions.
        model: The model under test.
        facts: Facts of the journal that is resumed; None: a new audit.
        device: Where surrogates compute, as PyTorch names it.
    """
    renderings: Renderings = space.shared.setdefault("renderings", Renderings(space))
    prior, cohort = None, None

    def of_earlier() -> "LossSurrogate":
        """Return a question GP for earlier answers; its import of PyTorch waits until then."""
        gp = named(QUESTION_GP)
        return _surrogate(gp, space, model.answers, renderings, space.fingerprint, device)

    if certify.prior_journal is not None:
        from .priors import WarmStart

        prior = WarmStart(read_prior(certify.prior_journal), space, of_earlier)
    nets = taught(certify, space, facts, model.check_key)
    if certify.cohort is not None and certify.certifies and certify.surrogate is not False:
        from .priors import CohortLosses

        cohort = CohortLosses(certify.cohort, space, of_earlier, facts)
    return Proxies(space, certify.proxies or {}, prior, nets, renderings, cohort)


def teaches(certify: Certify, space: QuestionSpace, facts: Facts | None) -> bool:
    """Return whether ``taught`` trains nets, or refuses to."""
    if certify.self_taught is False or not certify.certifies or certify.surrogate is False:
        return False
    return certify.self_taught != "auto" or _fits(space, facts)


def taught(
    certify: Certify, space: QuestionSpace, facts: Facts | None, check: Callable[[], None]
) -> "SelfTaught | None":
    """Return nets trained on the space's own images; None if they are not wanted or do not fit.

    Their seed is the dataset's fingerprint. So they depend on images and labels alone, not on any
    draw, and are the same in every audit of a space.

    Args:
        certify: ``self_taught`` says whether they are wanted.
        space: All questions.
        facts: Facts of the journal that is resumed; None: a new audit.
        check: Called before the training, which takes seconds: it checks the model's key.

    Raises:
        InputError: If they are demanded although labels do not decide what is right.
    """
    if not teaches(certify, space, facts):
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


def _fits(space: QuestionSpace, facts: Facts | None) -> bool:
    """Return whether "auto" trains nets: as the journal says, else if images and labels fit."""
    if facts is not None:
        return facts.self_taught is not None
    dataset = space.dataset
    if not dataset.has_images or _pixels(space) > MAX_PIXELS or not _judged_by_label(space):
        return False
    from ..models.local.self_taught import teachable

    return teachable(dataset)


def _judged_by_label(space: QuestionSpace) -> bool:
    # Nets predict the answers of one model, not the difference of two.
    by_label = space.oracle.concepts_are in ("labels", "classes")
    return by_label and not isinstance(space.oracle, Paired)


def _pixels(space: QuestionSpace) -> int:
    """Return the pixels of all follow-ups, if each is as large as the first source image."""
    height, width, _ = space.dataset.sample(0).require_image().shape
    return space.images * height * width


def _surrogate(
    chosen: Named,
    space: QuestionSpace,
    answers: CallMode,
    renderings: Renderings,
    seed: int | str,
    device: str,
    proxies: Proxies | None = None,
) -> "LossSurrogate":
    """Return a surrogate of losses for this space (``surrogates.QuestionGP`` explains it)."""
    from ..surrogates.features import same_truths, sample_features

    cohort = None if proxies is None else proxies.cohort
    relations = list(dict.fromkeys(v.relation.name for v in space.variants))
    arguments = {
        "relation": [relations.index(v.relation.name) for v in space.variants],
        "severity": [v.severity for v in space.variants],
        "concepts": len(space.concepts),
        "shared": answers == "all",
        "features": sample_features(space.dataset, seed=seed),
        "truths": same_truths(space.dataset),
        "follow_ups": _follow_ups(space, renderings, seed),
        "proxies": proxies if proxies and proxies.names else None,
        "device": device,
        **({} if cohort is None else {"cohort": cohort}),
    }
    for name in chosen.options.keys() & arguments.keys():
        raise InputError(
            f"surrogate {chosen.name!r}: expected options other than those of the audit itself, "
            f"got {name!r}; leave it out"
        )
    takes = signature(chosen.make).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values()):
        arguments = {name: value for name, value in arguments.items() if name in takes}
    made = REGISTRY.called(chosen.make, chosen.name, {**arguments, **chosen.options})
    surrogate: LossSurrogate = REGISTRY.checked(made, chosen.name)
    return surrogate


def _follow_ups(
    space: QuestionSpace, renderings: Renderings, seed: int | str
) -> "FollowUpFeatures | None":
    """Return features of the follow-up images; None if rendering them would take long."""
    if not renderings.available or _pixels(space) > MAX_PIXELS:
        return None
    from ..surrogates.features import FollowUpFeatures

    images = space.total // len(space.concepts)
    reference = np.unique(space.image_of(_reference(space, seed)))
    variants = len(space.variants)
    return FollowUpFeatures(renderings.thumbnails, reference, images=images, variants=variants)


def _reference(space: QuestionSpace, seed: int | str) -> Indices:
    """Return ``REFERENCE`` questions, drawn uniformly from the space."""
    return space.nth(generator(seed, "follow-ups").integers(space.size, size=REFERENCE))
