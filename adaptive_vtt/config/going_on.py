"""Going on with the audit of a run folder, under other limits if that is wanted."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from ..audit import Audit
from ..engine.budget import Lease
from ..engine.endpoint import give_up as give_up_batch
from ..errors import InputError, unknown
from ..journal import Journal, SQLiteJournal, closed_on_error, read_journal
from ..journal.facts import Facts, read_facts
from ..journal.files import JOURNAL
from ..journal.rows import CallRow
from ..oracles.judge_findings import cost_of
from ..results.gate import asked_later
from . import Spec, parse_spec
from .building import build_audit
from .resuming import check_before_code, check_program, notes_of, spec_of

OTHERWISE = "go on from Python: adaptive_vtt.Audit(..., journal=...) or audit(..., out=DIR)"
"""What to do about a journal that keeps no spec."""
_SECTIONS = {
    "budget": "audit",
    "max_cost": "audit",
    "half_width": "certify",
    "discover": "certify",
    "questions": "stop",
    "seconds": "stop",
}
"""Where each limit stands in a spec."""


class NewLimits(TypedDict, total=False):
    """What may be changed of an audit that has begun; None leaves it as it is."""

    budget: int | None
    max_cost: float | None
    half_width: float | None
    discover: int | None
    questions: int | None
    seconds: float | None


def new_limits(table: Mapping[str, Any]) -> dict[str, Any]:
    """The limits in the tables of a SPEC.toml. Raises InputError for any other field."""
    found: dict[str, Any] = {}
    for section, fields in table.items():
        for name, value in fields.items() if isinstance(fields, dict) else [("", None)]:
            if _SECTIONS.get(name) != section:
                known = [f"{place}.{limit}" for limit, place in _SECTIONS.items()]
                raise unknown("limit", f"{section}.{name}".rstrip("."), known, "--set")
            found[name] = value
    return found


def resume(
    directory: Path | str,
    *,
    posthoc: Sequence[str] = (),
    give_up: Sequence[str] = (),
    lease: Lease | None = None,
    **limits: Unpack[NewLimits],
) -> Audit:
    """The audit in the run folder ``directory``, brought to where it stopped: ``run`` goes on.

    ``limits`` change when it ends: ``budget`` (calls), ``max_cost`` (money), ``half_width``,
    ``discover`` (slices, looked for at once), ``questions``, ``seconds``, the fields of that name
    in SPEC.toml. They are journaled, so that they stay. Intervals hold at every moment, whatever
    ends the audit, so the guarantee is as it was (``certify.rules.Rules.aiming`` says why of
    ``half_width``).

    ``posthoc``: targets, as rules of a gate name them, that draws to come shall certify, too,
    whatever made somebody choose them; see ``Audit.certify_also``.

    ``give_up``: batches, by the provider's ids, that are waited for no more; each counts as billed
    at its worst price.

    ``lease``: what it may spend for now, where it is one of a fleet.

    Runs the model that the journal's spec names. Raises InputError for a limit below what was
    spent already, JournalError where no audit of a SPEC.toml was begun in the folder.
    """
    path = Path(directory) / JOURNAL
    read_journal(path).close()  # says so where no audit was begun
    with closed_on_error(SQLiteJournal(path, must_exist=True)) as journal:
        facts = read_facts(journal.facts())
        spec, base = spec_of(facts, str(path), OTHERWISE)
        check_program(facts, spec, str(path))
        for name in give_up:
            give_up_batch(journal, name)
        changes = {name: value for name, value in limits.items() if value is not None}
        notes = {}
        if changes:
            spec = _changed(spec, changes)
            check_limits(changes, journal, facts)
            notes = notes_of(spec, facts.base)
        audit = build_audit(
            spec,
            base,
            check=lambda space: check_before_code(facts, spec, space),
            journal=journal,
            notes=notes,
            lease=lease,
        )
        if posthoc:
            audit.certify_also(asked_later(audit.space, posthoc))
        return audit


def _questions(calls: Iterable[CallRow]) -> int:
    """How many were judged."""
    return sum(answer.loss is not None for call in calls for answer in call.answers)


def _changed(spec: Spec, changes: Mapping[str, Any]) -> Spec:
    table = spec.model_dump()
    for name, value in changes.items():
        table[_SECTIONS[name]][name] = value
    return parse_spec(table, "resume")


def check_limits(limits: Mapping[str, Any], journal: Journal, facts: Facts) -> None:
    """Raises InputError for a limit below what the audit in ``journal`` spent already, and for a
    half-width where it has none to change."""
    draws, calls, sources = journal.draws(proposals=False), journal.calls(), journal.sources()
    times = [d.elapsed for d in draws] + [c.elapsed for c in calls] + [s.elapsed for s in sources]
    cost = cost_of(calls, sources, journal.judging())
    spent: dict[str, tuple[float, str]] = {
        "budget": (len(draws) + len(sources), "calls, which were made already"),
        "max_cost": (cost, "which was spent already"),
        "questions": (_questions(calls), "questions, which were answered already"),
        "seconds": (math.ceil(max(times, default=0.0)), "seconds, which it has taken already"),
    }
    for name, (least, what) in spent.items():
        if limits.get(name, least) < least:
            raise InputError(f"{name}: expected at least {least:.10g} {what}; got {limits[name]}")
    if limits.get("half_width") is not None:
        _check_half_width(facts)


def _check_half_width(facts: Facts) -> None:
    certificate = facts.certificate
    if certificate is not None and certificate.half_width is not None:
        return
    got = "one that explores" if certificate is None else "one that only decides at_most"
    raise InputError(
        f"half_width: expected an audit that was begun with one, got {got}; begin a new audit "
        "with --half-width and another --out"
    )
