"""What is done with the audit of a run folder: going on, judging anew, looking at its questions."""

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

from ..audit import Audit
from ..audit.rejudging import rejudge
from ..audit.rereading import Rereading
from ..audit.shortcut import called_again
from ..engine.endpoint import give_up as give_up_batch
from ..engine.judge import with_answers
from ..errors import InputError, unknown
from ..journal import Journal, SQLiteJournal, check_undamaged, closed_on_error, read_journal
from ..journal.costs import costs_of
from ..journal.facts import Facts, read_facts
from ..journal.files import JOURNAL
from ..models.network.elicitation import WORDS
from ..models.network.elicitation import kind as yes_from
from ..models.network.prompt_templates import template as named_template
from ..results.advice import resume_command
from ..results.gate import asked_later
from ..results.result import Result
from ..space import QuestionSpace
from ..types import JsonObject
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
"""Where each limit stands in a spec."""


class NewLimits(TypedDict, total=False):
    """What may be changed of an audit that has begun; None leaves it as it is."""

    budget: int | None
    max_cost: float | None
    half_width: float | None
    discover: int | None
    questions: int | None
    seconds: float | None


def new_limits(table: Mapping[str, Any]) -> Table:
    """The limits in the tables of a SPEC.toml. Raises InputError for any other field."""
    found: Table = {}
    for section, fields in table.items():
        for name, value in fields.items() if isinstance(fields, dict) else [("", None)]:
            if _SECTIONS.get(name) != section:
                known = [f"{place}.{limit}" for limit, place in _SECTIONS.items()]
                raise unknown("limit", f"{section}.{name}".rstrip("."), known, "--set")
            found[name] = value
    return found


def stays_ended(directory: Path | str) -> bool:
    """Whether the audit in a run folder has ended, and under its own limits asks nothing more, so
    that nothing has to be learnt anew to go on with it. Raises as ``resume`` does for a journal
    that it would refuse."""
    path = Path(directory) / JOURNAL
    with closing(read_journal(path)) as journal:
        facts = read_facts(journal.facts())
        _spec_of(facts, directory, None)
        if facts.rejudged is not None or facts.ended is None:
            return False
        if len(journal.calls()) < len(journal.draws(proposals=False)):
            return False  # calls wait, which another price may let it pay for
        check_undamaged(journal)
        return True


def _spec_of(facts: Facts, directory: Path | str, model: str | None) -> tuple[Spec, Path]:
    """The spec of the audit in a run folder, and the folder its paths start at. Raises JournalError
    where there is none or it was changed, InputError for a ``model`` beside it."""
    path = str(Path(directory) / JOURNAL)
    spec, base = spec_of(facts, path, in_python(facts, directory))
    check_program(facts, spec, path)
    if model is not None:
        raise InputError(
            f"--model: expected none, as the run's SPEC.toml names its model (kind "
            f"{spec.model.kind!r}), got {model!r}; leave it out"
        )
    return spec, base


def resume(
    directory: Path | str,
    *,
    posthoc: Sequence[str] = (),
    give_up: Sequence[str] = (),
    model: str | None = None,
    **limits: Unpack[NewLimits],
) -> Audit:
    """The audit in the run folder ``directory``, brought to where it stopped: ``run`` goes on.

    ``limits`` change when it ends: ``budget`` (calls), ``max_cost`` (money), ``half_width``,
    ``discover`` (slices, looked for at once), ``questions``, ``seconds``, the fields of that name
    in SPEC.toml. They are journaled, so that they stay. Intervals hold at every moment, whatever
    ends the audit, so the guarantee is as it was (``certify.rules.Rules.aiming`` says why of
    ``half_width``). With a ``half_width`` an audit that its gate ended goes on past the gate.

    ``posthoc``: targets, as rules of a gate name them, that draws to come shall certify, too,
    whatever made somebody choose them; see ``Audit.certify_also``.

    ``give_up``: batches, by the provider's ids, that are waited for no more; each counts as billed
    at its worst price.

    ``model``: of an audit that ``adaptive_vtt.audit`` began in Python, 'file.py:name' or what else
    names its model; the journal keeps what else it was begun with.

    Runs the model that the journal's spec names. Raises InputError for a limit below what was
    spent already, JournalError where no audit of a SPEC.toml was begun in the folder.
    """
    path = Path(directory) / JOURNAL
    read_journal(path).close()  # says so where no audit was begun
    with closed_on_error(SQLiteJournal(path, must_exist=True)) as journal:
        facts = read_facts(journal.facts())
        changes = {name: value for name, value in limits.items() if value is not None}
        if model is not None and facts.call is not None:
            build = partial(_of_python, facts, facts.call, model)
        else:
            build = partial(_of_spec, facts, *_spec_of(facts, directory, model))
        for name in give_up:
            give_up_batch(journal, name)
        audit = build(changes, journal=journal)
        if posthoc:
            audit.certify_also(asked_later(audit.space, posthoc))
        return audit


def _of_spec(
    facts: Facts, spec: Spec, base: Path, changes: Table, *, journal: Journal, **given: Any
) -> Audit:
    """The audit of a journal's spec, under other limits where there are ``changes``."""
    notes = {}
    if changes:
        table = spec.model_dump()
        for name, value in changes.items():
            table[_SECTIONS[name]][name] = value
        if "half_width" in changes and facts.ended is not None and facts.ended.by == "gate":
            table["stop"]["gate"] = None  # it is decided, and would end the audit at once
        spec = parse_spec(table, "resume")
        check_limits(changes, journal, facts)
        # "parts" stays as it was: what was changed since is not run, and not taken for unchanged
        notes = {**notes_of(spec, facts.base), "parts": facts.parts}
    check = partial(check_before_code, facts, spec)
    return build_audit(spec, base, check=check, journal=journal, notes=notes, **given)


def _of_python(
    facts: Facts, call: JsonObject, model: str, changes: Table, *, journal: Journal, **given: Any
) -> Audit:
    """The audit that a call in Python began, with the model of this name."""
    if other := [f"stop.{name}" for name in changes if _SECTIONS[name] == "stop"]:
        raise InputError(
            f"--set {other[0]}: expected budget, max_cost or half_width, as this run was begun in "
            "Python, got a limit of a SPEC.toml; leave it out"
        )
    check_limits(changes, journal, facts)
    named = model == facts.settings.model or not is_target(model)
    source = model if named else load_object(model)
    notes = {"call": {**call, **changes}}
    return called_again(call, source, journal=journal, notes=notes, **changes, **given)


def in_python(facts: Facts, directory: Path | str) -> str:
    """What to type to go on with an audit that no SPEC.toml began: its journal keeps its settings,
    but not its model, nor data that were in memory."""
    if facts.call is not None:
        command = resume_command(facts, directory)
        name = facts.settings.model
        return f"type '{command}', the name of model {name!r}, or the Python that began it"
    certificate, limits = facts.certificate, "budget=MORE"
    if certificate is not None and certificate.half_width is not None:
        limits = f"half_width={certificate.half_width:g}, {limits}"
    call = f"adaptive_vtt.audit(DATA, MODEL, {limits}, out={str(directory)!r})"
    other = (
        f"adaptive_vtt.Audit(SPACE, MODEL, {limits}, journal={str(Path(directory) / JOURNAL)!r})"
    )
    return (
        f"go on from Python with the data, model {facts.settings.model!r} and other options that "
        f"began it: {call}, or, where Audit began it, {other}"
    )


def check_limits(limits: Mapping[str, Any], journal: Journal, facts: Facts) -> None:
    """Raises InputError for a limit below what the audit in ``journal`` spent already, and for a
    half-width where it has none to change."""
    draws, calls, sources = journal.draws(proposals=False), journal.calls(), journal.sources()
    times = [d.elapsed for d in draws] + [c.elapsed for c in calls] + [s.elapsed for s in sources]
    cost = costs_of(calls, sources, journal.judging()).cost
    questions = sum(answer.loss is not None for call in calls for answer in call.answers)
    spent: dict[str, tuple[float, str]] = {
        "budget": (len(draws) + len(sources), "calls, which were made already"),
        "max_cost": (cost, "of money, which was spent already"),
        "questions": (questions, "questions, which were answered already"),
        "seconds": (math.ceil(max(times, default=0.0)), "seconds, which it has taken already"),
    }
    for name, (least, what) in spent.items():
        if limits.get(name, least) < least:
            raise InputError(f"{name}: expected at least {least:.10g} {what}; got {limits[name]}")
    begun = facts.certificate
    if limits.get("half_width") is not None and (begun is None or begun.half_width is None):
        got = "one that explores" if begun is None else "one that only decides at_most"
        raise InputError(
            f"half_width: expected an audit that was begun with one, got {got}; begin a new audit "
            "with --half-width and another --out"
        )


JUDGE_OTHERWISE = "judge it again from Python with adaptive_vtt.rejudge(DIR, space, out=...)"
"""What to do about a journal that keeps no spec."""


def space_of(
    journal: Journal, where: str, otherwise: str, *, run_code: bool, compared: bool = False
) -> tuple[QuestionSpace, Spec, Path]:
    """The space of a journal's audit, built anew, its spec, and the folder its paths start at.

    Code that the spec names is imported only with ``run_code``, and if it is as it was then: else
    it is refused by InputError. Raises JournalError, which says what to do ``otherwise``, where the
    journal keeps no spec. ``where``: for messages; ``compared``: see ``spec_of``.
    """
    facts = read_facts(journal.facts())
    spec, base = spec_of(facts, where, otherwise, compared=compared)
    if run_code:
        check_program(facts, spec, where)
    else:
        refuse_code(spec, where, "--run-code runs it, if it is as it was then")
    return with_answers(build_space(spec, base), journal), spec, base


def rejudge_folder(
    directory: Path,
    oracle: str | None,
    changes: Mapping[str, Any],
    out: Path,
    *,
    template: str | None = None,
    rule: str | None = None,
) -> Result:
    """The answers in the run folder ``directory`` under another oracle, in the new folder ``out``.

    ``oracle``: its name, of a built-in one or of code, a file starting here; None: the audit's,
    whose fields then stay but for those that are given. ``changes``: the table of a SPEC.toml that
    holds those, under "oracle". Dataset, relations and oracle are built, and run where they are
    code, those of the audit only if they are as they were; the model is not. Kept replies are read
    anew: by the ``template`` of that name (None: the audit's), and by the ``rule``, code that
    ``Rereading`` describes (None: by ours). Raises InputError for fields that are none, and
    whatever ``rejudge`` raises.
    """
    where = directory / JOURNAL
    with closing(read_journal(where)) as journal:
        facts = read_facts(journal.facts())
    spec, base = spec_of(facts, str(where), JUDGE_OTHERWISE)
    check_program(facts, spec, str(where), judge=False)
    if other := [name for name in changes if name != "oracle"]:
        raise InputError(
            f"--set: expected oracle.FIELD, as nothing else may change, got {other[0]!r}"
        )
    table = spec.model_dump(exclude_none=True)
    dataset = build_dataset(spec, base)
    mine = oracle_section(spec, dataset).model_dump(exclude_none=True)
    kind = mine["kind"] if oracle is None else _from_here(oracle)
    before = mine if kind == mine["kind"] else {"kind": kind}
    section = merged({"oracle": before}, changes)["oracle"]
    if isinstance(section, dict) and section.get("judge") is False:  # the rule alone
        del section["judge"]
    spec = parse_spec({**table, "oracle": section}, "rejudge")
    notes, space = notes_of(spec, facts.base), build_space(spec, base, dataset)
    own = named_template(getattr(spec.model, "template", None) or "zero-shot", base)
    reading = Rereading(
        own if template is None else named_template(template),
        None if rule is None else load_object(rule, what="reading"),
        all(yes_from(way.yes_from) == WORDS for way in facts.ways.values()),
        rule,
    )
    return rejudge(directory, space, out=out, notes=notes, reading=reading)


def _from_here(oracle: str) -> str:
    """A file's oracle by its whole path: relative ones of a spec start at its folder."""
    file = file_of(oracle) if is_target(oracle) else None
    return oracle if file is None else f"{file.resolve()}:{oracle.rpartition(':')[2]}"
