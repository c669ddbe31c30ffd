"""The first step of an audit: begin its journal, or resume from it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..certify.targets import describe_population
from ..journal import answered, check_undamaged
from ..journal.facts import begun_facts, read_lost
from ..models.base import BatchModel, ModelDefaults
from ..models.local.python import ByHand
from ..stopping import levels_of
from .assembly import Assembled
from .audit_key import features_used, same_key
from .journaled_endpoint import JournaledElicitation, JournalRecord
from .options import Certify
from .settings import describe_space, same_audit


def begin(
    parts: Assembled, model: ModelDefaults, certify: Certify, notes: Mapping[str, Any]
) -> None:
    """Begin the journal of an audit, or resume from it.

    Args:
        parts: The audit's parts; its loop has the journal.
        model: The model under test.
        certify: What is certified.
        notes: Values that JSON can hold, by name, kept in the journal.

    Raises:
        JournalError: The journal belongs to another audit, or is damaged.
    """
    loop, proxies = parts.loop, parts.proxies
    journal, space, budget, selector = loop.journal, loop.space, loop.budget, loop.selector
    judge = space.oracle.judge_by
    elicitation = JournaledElicitation(journal, model, judge.model if judge else None)
    loop.hooks.append(elicitation)
    certificate, raw = selector.certificate(certify), journal.facts()
    budget.recall(read_lost(raw))  # a new journal may have the money lost in one that was set aside
    stops = {"stop": [str(rule) for rule in loop.rules], "stop_levels": levels_of(loop.rules)}
    facts, features = begun_facts(raw), features_used(space)
    if facts is None:
        targets = selector.targets
        population = describe_population(space, model.answers, targets) if certificate else None
        journal.set_facts(
            space=describe_space(space),
            settings=parts.settings,
            **stops,
            certificate=certificate,
            population=population,
            protocol=model.protocol(),
            **parts.origin.facts(),
            **proxies.facts(),
            features=features,
            **budget.facts(),
            **{name: fact for hook in loop.hooks for name, fact in hook.facts(None, 0).items()},
            **notes,
        )
        return
    other_width = certify.changes_width(facts.certificate)
    if certificate and other_width and facts.certificate:
        certificate["half_width"] = facts.certificate.half_width
    settings = {**parts.settings, "certificate": certificate}
    same_audit(facts, space, settings, partial(answered, journal))
    same_key(facts, key=parts.origin.key)
    check_undamaged(journal)
    elicitation.recall(facts.ways, facts.bounds)
    loop.replay()
    parts.judge_calls.lose()
    if isinstance(model, BatchModel):
        budget.submitted(JournalRecord(journal, loop.queue.__contains__).calls())
    elif not isinstance(model, ByHand):  # calls that wait in the journal may have been sent
        budget.lose(call.number for call in loop.queue.ready())
    changes = {**stops, **parts.origin.changes(facts), **proxies.changes(facts)}
    changes["features_changed"] = facts.features_changed or facts.features != features
    changes |= {**budget.facts(), **notes}
    changes |= {n: fact for h in loop.hooks for n, fact in h.facts(facts, loop.draws).items()}
    if loop.certifier and other_width and certify.aim is not None:
        loop.certifier.aim_at(certify.aim, loop.draws)
        changes["certificate"] = certify.describe(loop.certifier)
    if loop.open or loop.stopped is None:  # opening an audit that stays ended writes nothing
        changes |= {"ended": None, "intervals": None}
    # a fact that the journal lacks is false, empty or None already
    journal.set_facts(**{name: fact for name, fact in changes.items() if fact or name in raw})
