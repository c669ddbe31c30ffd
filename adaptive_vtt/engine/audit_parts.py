"""What drives an audit, put together from its options, and brought to where a journal stopped."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..certify import Certifier, Move, Target
from ..journal import Journal
from ..journal.facts import Facts
from ..journal.rows import DrawRow
from ..models.base import ModelDefaults
from ..space import QuestionSpace
from ..strategies.by_need import ByNeed, needs_targets
from .assembly import (
    features_used,
    fresh_belief,
    metadata_used,
    population,
    surrogate_in_journal,
    surrogate_is_custom,
    taught,
    warm_start,
)
from .audit_key import Origin, is_custom, seed_for
from .budget import Budget, Judged
from .call_queue import Call, CallQueue
from .checkpoints import Checkpoints
from .draw_order import Blocks, DrawOrder
from .endpoint import Failing
from .judge import Judge
from .judging import Judging
from .options import Certify, Limits, Sampling
from .prices import Prices
from .proxies import Proxies, Renderings
from .repeat_probes import RepeatProbes, SourceQueue
from .selector import Selector, teach
from .settings import check_budget, describe_settings, questions_per_call


@dataclass(frozen=True)
class Parts:
    """The parts of one audit, which share their state: each is there once.

    ``settings``: what the journal says of them; ``origin``: what their random choices follow from.
    """

    settings: dict[str, Any]
    origin: Origin
    proxies: Proxies
    selector: Selector
    judge: Judge
    queue: CallQueue
    draw_order: DrawOrder
    budget: Budget
    failing: Failing
    repeat_probes: RepeatProbes
    source_queue: SourceQueue
    judging: Judging
    checkpoints: Checkpoints

    def take(self, row: DrawRow) -> None:
        """Counts a draw in, once the selector has it; repeat probes may be due after it."""
        self.draw_order.calls.append(row.call)
        asked = self.judge.space.oracle.models_asked(np.array([row.question]))
        self.budget.drawn += int(asked[0])
        self.repeat_probes.after(len(self.draw_order.calls))

    def wait_for(self, row: DrawRow) -> None:
        """Queues the draw's call behind that of its source, where there is one to make."""
        source = self.source_queue.before(row.question, row.draw)
        self.queue.put(Call(row.call, row.draw, self.judge.prompt(row.call)), after=source)

    def adopt(self, slices: Sequence[Target], journal: Journal) -> None:
        """Makes ``slices`` targets from the next draw on.

        The certifier that has them goes through the journal as it will on resuming, so that an
        interrupted audit goes on to the last bit as an undisturbed one.
        """
        before = self.selector.certifier
        if before is None:
            return
        since = [*before.sequences.since.tolist(), *[self.selector.draws] * len(slices)]
        rules = replace(before.rules, slices=before.rules.slices + len(slices))
        targets, answers = [*before.targets, *slices], before.answers
        certifier = Certifier(before.space, targets, answers=answers, rules=rules, since=since)
        calls = {c.call: c for c in journal.calls()}
        for row in journal.draws(proposals=False):
            questions = self.judge.questions_of(row.call)
            move = Move.of(row.moves)
            certifier.restore(move, certifier.members(questions))
            if row.draw < self.draw_order.learned:
                teach(certifier, move, questions, self.draw_order.outcomes(calls[row.call]))
        self.selector.belief.certifier = certifier

    def replay(self, journal: Journal) -> float:
        """Goes through the journal in the order in which things were drawn and learnt.

        Returns after how many seconds of audit the last of it happened.
        """
        calls = {c.call: c for c in journal.calls()}
        for call in calls.values():
            self.draw_order.keep(call)
            self.budget.pay(call.cost)
        self.checkpoints.recall(journal.beliefs())
        self.judging.recall(journal.judging(), set(calls))
        for source in journal.sources():
            self.source_queue.recall(source)
            self.budget.pay(source.cost)
        self.judge.pictures = sum(len(a) + len(b) for a, b in journal.pictures().values())
        draws = journal.draws(proposals=False)
        for row in draws:
            self.draw_order.restore(row)
            move = Move.of(row.moves) if row.moves else None
            self.selector.restore(self.judge.questions_of(row.call), move, row.why)
            self.take(row)
            if row.call not in calls and row.call not in self.judging:
                self.wait_for(row)
        self.failing.trust(calls.values())
        self.draw_order.catch_up()
        times = [d.elapsed for d in draws] + [c.elapsed for c in calls.values()]
        return max(times, default=0.0)


def assembled(
    space: QuestionSpace,
    model: ModelDefaults,
    certify: Certify,
    sampling: Sampling,
    limits: Limits,
    *,
    facts: Facts | None,
    device: str,
) -> Parts:
    """The parts of an audit that has asked nothing yet, or goes on with a journal of ``facts``.

    Raises InputError for options that do not fit.
    """
    exploration = sampling.share(certify.certifies)
    chosen = sampling.chosen(certify.certifies)
    if isinstance(chosen.strategy, ByNeed) and not certify.certifies:
        raise needs_targets()
    memory = space.oracle.memory(space)
    renderings = Renderings(space)
    earlier = warm_start(certify, space, model.answers, renderings, device)
    net = taught(certify, space, facts)
    cohort = population(certify, space, model.answers, renderings, device, facts)
    given = certify.proxies or {}
    proxies = Proxies(space, given, earlier, memory, net, renderings, cohort)
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
    code = (chosen.strategy, memory, space.oracle.original, *(v.relation for v in space.variants))
    origin = Origin.of(
        facts,
        model,
        proxies.prior_keys,
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
        memory=memory,
        form=sampling.form,
        history=sampling.history,
        prices=prices,
    )
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
    judge = Judge(space, model.answers, keep_masks=sampling.keep_masks)
    queue = CallQueue()
    checkpoints = Checkpoints(belief, origin.key)
    draw_order = DrawOrder(selector, certify.unanswered == "both", Blocks.of(model), checkpoints)
    repeat_probes = RepeatProbes(origin.key, sampling.repeat_probes, judge, queue, draw_order)
    source_queue = SourceQueue(judge.sources, queue, belief.sources, repeat_probes)
    check_budget(limits.budget, source_queue.most * space.oracle.models)
    by = space.oracle.judge_by
    judged = None if by is None else Judged(by.model, questions_per_call(space, model.answers))
    budget = Budget(model, limits.max_cost, judged, limits.lease)
    return Parts(
        settings,
        origin,
        proxies,
        selector,
        judge,
        queue,
        draw_order,
        budget,
        Failing(limits.fail_on_error, model),
        repeat_probes,
        source_queue,
        Judging(judge, queue, budget, origin.key),
        checkpoints,
    )
