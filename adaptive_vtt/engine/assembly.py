"""An audit's belief, loop and their parts, made from its options."""

from collections.abc import Callable
from dataclasses import dataclass

from ..journal.facts import Facts
from ..models.base import ConcurrentModel, ModelDefaults
from ..space import QuestionSpace
from ..strategies.by_need import ByNeed, needs_targets
from ..surrogates import named
from ..types import JsonObject
from ..utils.threads import one_thread
from .audit_key import Origin, features_used, is_custom, metadata_used, seed_for
from .belief import Belief
from .budget import Budget, Judged
from .call_queue import CallQueue, SourceQueue
from .checkpoints import Checkpoints
from .draw_order import Blocks, DrawOrder
from .judge import Judge
from .judge_calls import JudgeCalls
from .loop import Loop, Stopwatch
from .options import Certify, Limits, Sampling
from .predictors import fresh_belief, proxies_of, surrogate_in_journal
from .prices import Prices
from .proxies import Proxies
from .repeat_probes import RepeatProbes
from .selector import Selector
from .settings import check_budget, currency_paid, describe_settings, questions_per_call
from .unanswered_calls import UnansweredCalls

InOrder = Callable[[Judge, Belief, Certify, Sampling], tuple[Selector, DrawOrder]]
"""Function that makes the selector and draw order of an audit that asks everything."""


@dataclass(frozen=True)
class Assembled:
    """The parts of an audit.

    - ``loop``: draws, asks and learns. Its hooks: ``unanswered`` counts calls without an answer,
      ``checkpoints`` keeps beliefs, ``judge_calls`` asks a judge model.
    - ``settings``: the fact "settings" of a new journal.
    - ``origin``: the audit's key and what it was made from.
    - ``proxies``: cheaper predictions of losses.
    """

    loop: Loop
    unanswered: UnansweredCalls
    checkpoints: Checkpoints
    judge_calls: JudgeCalls
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
    """Return the parts of an audit.

    Args:
        space: All questions.
        model: The model under test.
        certify: What is certified.
        sampling: How questions are chosen.
        limits: When the audit ends.
        facts: Facts of the journal that is resumed; None: a new audit.
        device: Where surrogates compute, as PyTorch names it.
        watch: The audit's stopwatch.
        in_order: For an audit that asks everything, the function that makes its selector and draw
            order. Default None: calls are drawn.

    Raises:
        InputError: For options that do not fit together.
    """
    exploration = sampling.share(certify.certifies)
    chosen = sampling.chosen(certify.certifies)
    by_need = isinstance(chosen.strategy, ByNeed)
    if by_need and not certify.certifies:
        raise needs_targets()
    proxies = proxies_of(certify, space, model, facts, device)
    prices = Prices.of(space, model, sampling.by_price and by_need, facts)
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
    surrogate = None if isinstance(certify.surrogate, bool) else named(certify.surrogate).make
    relations = (variant.relation for variant in space.variants)
    parts = (chosen.strategy, surrogate, *space.oracle.code, *relations)
    origin = Origin.of(
        facts,
        model,
        priors=proxies.prior_keys,
        goal=certify.goal(),
        replay=None if sampling.replay is None else sampling.replay.facts,
        custom=proxies.unversioned or any(is_custom(part) for part in parts if part is not None),
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
        even=not by_need,
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
        both_ways = certify.unanswered == "both"
        draw_order = DrawOrder(selector, both_ways, Blocks.of(model), checkpoints.learnt)
    probes = RepeatProbes(origin.key, sampling.repeat_probes, judge, queue, draw_order)
    judge_model = None if space.oracle.judge_by is None else space.oracle.judge_by.model
    currency = currency_paid(model, judge_model, facts)
    per_call = questions_per_call(space, model.answers)
    judged = None if judge_model is None else Judged(judge_model, per_call)
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
    judge_calls = JudgeCalls(judge, queue, budget, origin.key)
    unanswered = UnansweredCalls(limits.fail_on_error, model)
    loop.hooks += [unanswered, *([] if in_order else [checkpoints]), judge_calls, probes]
    return Assembled(loop, unanswered, checkpoints, judge_calls, settings, origin, proxies)
