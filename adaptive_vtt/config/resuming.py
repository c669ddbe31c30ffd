"""Resume audits of run folders, judge them by another oracle, or rebuild their questions."""

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

from ..audit import Audit
from ..audit.one_line import called_again, questions_again
from ..audit.proposed import proposed
from ..audit.rejudging import rejudge
from ..audit.rereading import Rereading
from ..engine.journaled_endpoint import give_up as give_up_batch
from ..engine.settings import same_audit
from ..engine.source_calls import with_answers
from ..errors import unexpected, unknown
from ..journal import Journal, SQLiteJournal, check_undamaged, closed_on_error, read_journal
from ..journal.costs import costs_of
from ..journal.facts import Facts, read_facts
from ..journal.files import JOURNAL
from ..models.network.elicitation import WORDS
from ..models.network.elicitation import kind as yes_from
from ..models.network.prompt_templates import template as named_template
from ..results.advice import resuming, rounded
from ..results.gate import asked_later
from ..results.result import Result
from ..space import QuestionSpace
from ..types import JsonObject
from ..utils.figures import money
from ..utils.files import Table, merged
from ..utils.other_code import file_of, is_target, load_object
from . import Spec, parse_spec
from .building import build_audit, build_dataset, build_space, oracle_section
from .journaled import check_before_code, check_program, notes_of, refuse_code, spec_of

_SECTIONS = {
    "budget": "audit",
    "max_cost": "audit",
    "half_width": "certify",
    "discover": "certify",
    "questions": "stop",
    "seconds": "stop",
}
"""The section of each limit in a spec."""


class NewLimits(TypedDict, total=False):
    """New limits of an audit that has begun; None leaves one unchanged."""

    budget: int | None
    max_cost: float | None
    half_width: float | None
    discover: int | None
    questions: int | None
    seconds: float | None


def new_limits(table: Mapping[str, Any]) -> Table:
    """Return the limits in the tables of a SPEC.toml. Raise InputError for any other field."""
    limits: Table = {}
    for section, fields in table.items():
        for name, value in fields.items() if isinstance(fields, dict) else [("", None)]:
            if _SECTIONS.get(name) != section:
                known = [f"{place}.{limit}" for limit, place in _SECTIONS.items()]
                raise unknown("limit", f"{section}.{name}".rstrip("."), known, "--set")
            limits[name] = value
    return limits


def stays_ended(directory: Path | str) -> bool:
    """Return whether the audit in a run folder has ended and its limits allow no more calls: to
    resume it would do nothing. Raise as ``resume`` does for a journal that it would refuse."""
    path = Path(directory) / JOURNAL
    with closing(read_journal(path)) as journal:
        facts = read_facts(journal.facts())
        _spec_of(facts, directory, None)
        if facts.rejudged is not None or facts.ended is None:
            return False
        if len(journal.calls()) < len(journal.draws(proposals=False)):
            return False  # calls wait, which another price may make affordable
        check_undamaged(journal)
        return True


def _spec_of(facts: Facts, directory: Path | str, model: str | None) -> tuple[Spec, Path]:
    """Return the spec of the audit in a run folder, and the folder that its paths start at.

    Raise JournalError if there is none or it was changed, and InputError for another ``model``.
    """
    path = str(Path(directory) / JOURNAL)
    spec, base = spec_of(facts, path, f"continue with {resuming(facts, directory)}")
    check_program(facts, spec, path)
    if model is not None:
        expected = f"none, as the run's SPEC.toml names its model (kind {spec.model.kind!r})"
        raise unexpected("--model", expected, repr(model), "leave it out")
    return spec, base


def resume(
    directory: Path | str,
    *,
    posthoc: Sequence[str] = (),
    give_up: Sequence[str] = (),
    model: str | None = None,
    **limits: Unpack[NewLimits],
) -> Audit:
    """Resume the audit in a run folder; its ``run`` continues it.

    The model that the journal's spec names is called. Intervals hold at every moment, whatever ends
    the audit, so the guarantee does not change (``certify.rules.Rules.aiming`` explains
    ``half_width``). With a ``half_width`` an audit that its gate ended continues past the gate.

    Args:
        directory: The run folder.
        posthoc: Targets, named as in rules of a gate, to certify with further draws, for whatever
            reason they were chosen; see ``Audit.certify_also``.
        give_up: Provider ids of batches to stop waiting for; each counts as billed at its worst
            price.
        model: Model of an audit that ``adaptive_vtt.audit`` began in Python: 'file.py:name' or
            another name of a model. All other settings come from the journal.
        limits: New limits, which are journaled: ``budget`` (calls), ``max_cost`` (money),
            ``half_width``, ``discover`` (slices, searched for at once), ``questions``, ``seconds``,
            as in SPEC.toml.

    Returns:
        The audit in the state in which it stopped.

    Raises:
        InputError: A limit is below what was spent already.
        JournalError: The folder has no audit of a SPEC.toml.
    """
    path = Path(directory) / JOURNAL
    read_journal(path).close()  # raises where no audit was begun
    with closed_on_error(SQLiteJournal(path, must_exist=True)) as journal:
        facts = read_facts(journal.facts())
        changes = {name: value for name, value in limits.items() if value is not None}
        if model is not None and facts.call is not None:
            build = partial(_of_python, facts, facts.call, model)
        else:
            build = partial(_of_spec, facts, *_spec_of(facts, directory, model))
        for name in give_up:
            give_up_batch(journal, name)
        audit = build(changes, journal)
        if posthoc:
            audit.certify_also(asked_later(audit.space, posthoc))
        return audit


def _of_spec(facts: Facts, spec: Spec, base: Path, changes: Table, journal: Journal) -> Audit:
    """Return the audit of a journal's spec, with ``changes`` of its limits."""
    mended = check_program(facts, spec, "resume")
    notes: dict[str, Any] = {"parts_changed": mended} if mended else {}
    if changes:
        table = spec.model_dump()
        for name, value in changes.items():
            table[_SECTIONS[name]][name] = value
        if "half_width" in changes and facts.ended is not None and facts.ended.by == "gate":
            table["stop"]["gate"] = None  # the gate is decided: it would end the audit at once
        spec = parse_spec(table, "resume")
        _check_limits(changes, journal, facts)
        # "parts" stays: code that was changed since must not pass for unchanged
        notes |= {**notes_of(spec, facts.base), "parts": facts.parts}
    check = partial(check_before_code, facts, spec)
    return build_audit(spec, base, check=check, journal=journal, notes=notes)


def _of_python(
    facts: Facts, call: JsonObject, model: str, changes: Table, journal: Journal
) -> Audit:
    """Return the audit that a call in Python began, with the model of this name."""
    if other := [f"stop.{name}" for name in changes if _SECTIONS[name] == "stop"]:
        expected = "budget, max_cost or half_width, as this run was begun in Python"
        raise unexpected(f"--set {other[0]}", expected, "a limit of a SPEC.toml", "leave it out")
    _check_limits(changes, journal, facts)
    named = model == facts.settings.model or not is_target(model)
    source, notes = model if named else load_object(model), {"call": {**call, **changes}}
    return called_again(call, source, journal=journal, notes=notes, **changes)


def _check_limits(limits: Mapping[str, Any], journal: Journal, facts: Facts) -> None:
    """Raise InputError for a limit below what was spent, and for a half-width that replaces none.

    Args:
        limits: The new limits.
        journal: Journal of the audit.
        facts: Its facts.
    """
    draws, calls, sources = journal.draws(proposals=False), journal.calls(), journal.sources()
    times = [*(d.elapsed for d in draws), *(c.elapsed for c in calls)]
    seconds = max([*times, *(s.elapsed for s in sources)], default=0.0)
    cost = costs_of(calls, sources, journal.judging()).cost
    questions = sum(answer.loss is not None for call in calls for answer in call.answers)
    spent: dict[str, tuple[float, str]] = {
        "budget": (made := len(draws) + len(sources), f"the {made} calls made already"),
        "max_cost": (cost, f"{money(rounded(cost), facts.currency)}, the cost so far"),
        "questions": (questions, f"the {questions} questions answered already"),
        "seconds": (seconds, f"the {math.ceil(seconds)} seconds taken already"),
    }
    for name, (least, what) in spent.items():
        if limits.get(name, least) < least:
            raise unexpected(name, f"at least {what}", limits[name])
    begun = facts.certificate
    if limits.get("half_width") is not None and (begun is None or begun.half_width is None):
        got = "one that explores" if begun is None else "one that only decides at_most"
        remedy = "begin a new audit with --half-width and another --out"
        raise unexpected("half_width", "an audit that was begun with one", got, remedy)


def space_of(
    journal: Journal, where: str, otherwise: str, *, run_code: bool, compared: bool = False
) -> QuestionSpace:
    """Build the space of a journal's audit again.

    Args:
        journal: The journal.
        where: Its name, for messages.
        otherwise: Remedy for a journal that keeps neither a spec nor a call in Python.
        run_code: Whether to import code that is named, of a spec only if it has not changed.
        compared: See ``spec_of``.

    Raises:
        InputError: Code is named, and ``run_code`` is False.
        JournalError: The journal has neither a spec nor a call, or its code or data have changed.
    """
    facts = read_facts(journal.facts())
    if facts.spec is None and facts.call is not None:
        if not run_code:
            refuse_code(facts.call, where)
        space = questions_again(facts.call).space
        same_audit(facts, space, {})
        return with_answers(space, journal)
    spec, base = spec_of(facts, where, otherwise, compared=compared)
    if run_code:
        check_program(facts, spec, where)
    else:
        refuse_code(spec, where)
    return with_answers(build_space(spec, base), journal)


def rejudge_folder(
    directory: Path,
    oracle: str | None,
    changes: Mapping[str, Any],
    out: Path,
    *,
    template: str | None = None,
    rule: str | None = None,
) -> Result:
    """Judge the answers in a run folder by another oracle.

    Code of dataset, relations and oracle is run, the audit's only if it has not changed. The model
    is not built. Raise InputError for unknown fields, and whatever ``rejudge`` raises.

    Args:
        directory: The run folder.
        oracle: Name of a built-in oracle or of code, whose file starts at the current folder; None:
            the audit's.
        changes: Table of a SPEC.toml with options of the oracle, under "oracle".
        out: The new folder.
        template: Template by which kept replies are read again; None: the audit's.
        rule: Code that reads them, see ``Rereading``; None: our own rules.
    """
    where = directory / JOURNAL
    with closing(read_journal(where)) as journal:
        facts = read_facts(journal.facts())
    if other := [name for name in changes if name != "oracle"]:
        raise unexpected("--set", "oracle.FIELD, as nothing else may change", repr(other[0]))
    again = "judge it again from Python with adaptive_vtt.rejudge(DIR, SPACE, out=NEW)"
    call, own = None if facts.spec else facts.call, named_template("zero-shot")
    if call is not None:
        begun = call["oracle"] or proposed(questions_again(call).space.dataset).oracle
        mine = dict(begun) if isinstance(begun, dict) else {"kind": begun}
    else:
        spec, base = spec_of(facts, str(where), again)
        check_program(facts, spec, str(where), judge=False)
        table = spec.model_dump(exclude_none=True)
        dataset = build_dataset(spec, base)
        mine = oracle_section(spec, dataset).model_dump(exclude_none=True)
        own = named_template(getattr(spec.model, "template", None) or "zero-shot", base)
    kind = mine["kind"] if oracle is None else oracle
    file = file_of(kind) if oracle is not None and is_target(kind) else None
    if file is not None:  # relative files of a spec start at its folder
        kind = f"{file.resolve()}:{kind.rpartition(':')[2]}"
    before = mine if kind == mine["kind"] else {"kind": kind}
    section = merged({"oracle": before}, changes)["oracle"]
    if isinstance(section, dict) and section.get("judge") is False:  # the rule alone
        del section["judge"]
    if call is not None:
        notes: dict[str, Any] = {"call": {**call, "oracle": section}}
        space = questions_again(notes["call"]).space
    else:
        spec = parse_spec({**table, "oracle": section}, "rejudge")
        notes, space = notes_of(spec, facts.base), build_space(spec, base, dataset)
    reading = Rereading(
        own if template is None else named_template(template),
        None if rule is None else load_object(rule, what="reading"),
        all(yes_from(way.yes_from) == WORDS for way in facts.ways.values()),
        rule,
    )
    return rejudge(directory, space, out=out, notes=notes, reading=reading)
