"""An audit that looks for slices while it goes on, and makes targets of what it finds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..certify.population import masks_of
from ..certify.targets import Target
from ..engine.audit_parts import Parts
from ..engine.plan import Certify
from ..errors import InputError
from ..journal import Journal
from ..journal.facts import DiscoverFacts, Facts
from ..journal.rows import DrawRow
from ..space import QuestionSpace
from ..stopping import State, StoppingRule
from ..types import Indices, TargetId
from .slices.evidence import Evidence
from .slices.looking import Looking, asked_for, fact, is_due


class Discovery:
    """Looks for up to ``certify.discover`` slices in all, at the draws of ``audit.slices.looking``,
    at those of ``also``, and once before the audit ends for want of open targets. Targets that were
    asked for later count among them: alpha is shared by place.

    What is found is journaled before the next draw, from which on it is a target.
    """

    def __init__(
        self, space: QuestionSpace, certify: Certify, parts: Parts, rules: Sequence[StoppingRule]
    ) -> None:
        self._most, self._by = certify.discover, tuple(certify.discover_by)
        self._parts, self._rules = parts, rules
        self._looking = Looking(space, self._by) if self._most else None
        self._also: tuple[int, ...] = ()
        self._looked = -1

    def facts(self) -> dict[str, Any]:
        """What the journal says of it; {} where nothing is looked for."""
        if self._looking is None and not self._also:
            return {}
        return {"discover": {"most": self._most, "by": [*self._by], "also": [*self._also]}}

    def go_on(self, facts: Facts) -> dict[str, Any]:
        """What the journal that is gone on with is to say from now on: where more slices are looked
        for than before, the audit looks at the present draw."""
        before = facts.discover or DiscoverFacts(most=0, by=())
        self._also = before.also
        if facts.certificate is not None and facts.certificate.slices:
            self._looked = facts.certificate.slices[-1].since
        if self._most > before.most:
            self._also += (self._draws,)
        return self.facts()

    def is_due(self, state: Callable[[], State]) -> bool:
        """Whether the next draw has to wait for a look."""
        draws = self._draws
        if self._looking is None or draws == self._looked or self._found >= self._most:
            return False
        return is_due(draws) or draws in self._also or self._last_chance(state())

    def look(self, journal: Journal) -> None:
        """Looks, journals what it finds, and goes on with it."""
        certifier, looking = self._parts.selector.certifier, self._looking
        if certifier is None or looking is None:
            return
        self._looked = self._draws
        registered = certifier.registered
        found = looking.find(
            self._learned(journal),
            journal.calls(),
            most=self._most - self._found,
            known=registered,
            slices=certifier.targets[len(registered) :],
        )
        if not found:
            return
        drawn = self._drawn()
        told = [fact(looking.space, one, self._draws, drawn) for one in found]
        self._adopt([one.target for one in found], told, journal)

    def ask_for(self, targets: Mapping[str, Target], journal: Journal) -> None:
        """Makes targets of these, by name, from the next draw on: whatever made somebody ask for
        them lies in the past by then.

        Raises InputError where the audit set no alpha aside for targets that come later, and for
        what is a target already.
        """
        certifier = self._parts.selector.certifier
        if certifier is None or not certifier.rules.set_aside:
            raise InputError(
                "posthoc: expected an audit that set a share of its alpha aside for targets that "
                "come later (discover, or set_aside in [certify]), got one that set none aside; "
                f"begin a new one with {', '.join(targets)} among its targets and another --out"
            )
        known = [masks_of(target) for target in certifier.targets]
        for name, target in targets.items():
            if (masks := masks_of(target)) in known:
                raise InputError(f"posthoc: {name!r} is a target already")
            known.append(masks)
        space = self._parts.selector.space
        evidence = Evidence.of(space, self._learned(journal), journal.calls())
        drawn, since = self._drawn(), self._draws
        told = [
            asked_for(space, target, name, evidence, drawn, since)
            for name, target in targets.items()
        ]
        named = [
            replace(target, id=TargetId("slice", filter=name)) for name, target in targets.items()
        ]
        self._adopt(named, told, journal)

    def _adopt(
        self, targets: Sequence[Target], told: Sequence[dict[str, Any]], journal: Journal
    ) -> None:
        """``told``: the targets as facts, which are journaled first."""
        before = journal.facts().get("slices") or []
        journal.set_facts(slices=[*before, *told])
        self._parts.adopt(targets, journal)

    def _learned(self, journal: Journal) -> list[DrawRow]:
        """The draws that were learnt from."""
        learned = self._parts.draw_order.learned
        return [row for row in journal.draws(proposals=False) if row.draw < learned]

    def _drawn(self) -> Indices:
        """Every question that was drawn."""
        drawn = [self._parts.judge.questions_of(call) for call in self._parts.draw_order.calls]
        return np.concatenate([np.zeros(0, np.int64), *drawn])

    def _last_chance(self, state: State) -> bool:
        """Whether nothing but want of open targets ends the audit now."""
        open_ = replace(state, lower=None, upper=None)
        ended = any(rule.reached(state) for rule in self._rules)
        return ended and not any(rule.reached(open_) for rule in self._rules)

    @property
    def _draws(self) -> int:
        return len(self._parts.draw_order.calls)

    @property
    def _found(self) -> int:
        certifier = self._parts.selector.certifier
        return 0 if certifier is None else certifier.rules.slices
