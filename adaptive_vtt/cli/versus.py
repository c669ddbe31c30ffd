"""``avtt versus``: ask two models the same drawn questions, until it is known which is better."""

import math
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import typer

from ..audit.versus import Verdict, Versus, verdict_of
from ..certify import named_targets
from ..config import Spec
from ..config.building import build_parts, build_space, model_of
from ..config.journaled import notes_of
from ..engine.settings import describe_oracle, other_pictures
from ..errors import InputError, advising, some
from ..journal import SQLiteJournal
from ..journal.facts import begun_facts, read_facts
from ..journal.files import JOURNAL, journal_at
from ..models.local.recorded import answers_table
from ..results.advice import Names, Step, in_money, steps_of_two, to_decide
from ..results.difference import DECISIONS, brief, in_brackets
from ..results.gate import Gated
from ..results.report.page import write_run
from ..results.run import Run
from ..space import QuestionSpace
from ..utils.figures import percent
from .options import names
from .printing import print_filled, print_json, table_of
from .progress import Live
from .run_folder import open_report, own_progress, print_steps
from .signals import interruptible
from .spec_changes import read

ALONE = ("half_width", "at_most", "prior_journal", "cohort")
"""Options of a spec that are about one model."""


Placed = tuple[Spec, Path]
"""A spec, and the folder that its paths start at."""


class Asked(NamedTuple):
    """The options of the command that ``Versus`` takes."""

    margin: float
    at_least: float | None
    recorded_a: Path | None
    journal_a: Path | None
    use: Any
    targets: list[str] | None
    gate: list[str]
    specs: tuple[Path, Path]


def versus(  # noqa: PLR0913 - a command's options
    spec_a: Path,
    spec_b: Path,
    *,
    margin: float = 0.0,
    at_least: float | None = None,
    recorded_a: Path | None = None,
    journal_a: Path | None = None,
    use: str = "condition",
    gate: list[str] | None = None,
    targets: str | None = None,
    budget: int | None = None,
    max_cost: float | None = None,
    seed: int | None = None,
    require_decided: bool = False,
    out: Path = Path("runs/versus"),
    set_: list[str] | None = None,
    open_: bool = False,
    json_: bool = False,
) -> None:
    """Compare two models on the same questions.

    For each target, B is better or worse than A, equivalent within the margin, or
    open; with --at-least the claim holds, fails or is open. The same command
    continues the comparison in --out; no answer that came back is paid for
    twice. The half-width of the specs is about one model, and not used here.

    Example: avtt versus old.toml new.toml --margin 0.02 --budget 2000 --out runs/new

    Args:
        spec_a (SPEC_A.toml): The old model A, and all settings.
        spec_b (SPEC_B.toml): The new model B, on the same questions.
        margin (SHARE): A difference of error rates that does not matter; 0.02 is 2 percentage
            points. With 0 every difference matters, and a limit is needed.
        at_least (SHARE): A claim to decide instead: B is wrong less often, by at least this share;
            -0.02 claims at most 2 percentage points more often. It takes fewer calls.
        recorded_a (TABLE): CSV of model A's answers to every question; only B is asked.
        journal_a (DIR): Run folder of an earlier audit of model A.
        use (HOW): How to use --journal-a. condition: A's answers count, at no cost. replay: B is
            first asked the same questions, for a model B that was made without them. proxy: A's
            answers are predictions alone.
        gate (RULE): A rule such as 'versus:overall <= +0.01', at most 1 point more errors;
            repeatable. The comparison ends once all rules are decided.
        targets (NAMES): Groups of questions on which the models are compared, separated by commas:
            overall, relations, group:COLUMN ... Default: those of SPEC_A, else overall.
        budget (CALLS): A limit: calls of both models together. Default: SPEC_A's.
        max_cost (MONEY): A limit: money for both models together. Default: SPEC_A's.
        seed (NUMBER): Same seed, same comparison. Default: a new one.
        require_decided: Exit with 4 if a target stays open.
        out: Folder to write journal.db, result.json and report.html into.
    """
    with interruptible(out, "the same command continues where this stopped"):
        flags = {"audit.budget": budget, "audit.max_cost": max_cost, "audit.seed": seed}
        a, b = read(spec_a, False, flags, set_), read(spec_b, False, {})
        if not json_:
            _print_limits(spec_a, a[0], flags, set_ or [])
        files, wanted = (spec_a, spec_b), names(targets)
        asked = Asked(margin, at_least, recorded_a, journal_a, use, wanted, gate or [], files)
        verdict = _run(a, b, asked, out, json_)
        if json_:
            print_json(verdict.result.to_dict())
        if open_:
            open_report(out / "report.html")
        if require_decided and not verdict.decided:
            count = int((verdict.targets["decision"] == "open").sum())
            typer.echo(f"avtt: {count} of {len(verdict.targets)} targets are open", err=True)
            raise typer.Exit(4)


def _print_limits(path: Path, spec: Spec, flags: Mapping[str, object], sets: Sequence[str]) -> None:
    """Print that limits of the first spec, meant for one model, count for both together.

    ``flags`` and ``sets``: options of the command, which replace them.
    """
    given = {name for name, value in flags.items() if value is not None}
    given |= {change.partition("=")[0].strip() for change in sets}
    for name, what in {"budget": "calls", "max_cost": "money"}.items():
        limit, option = getattr(spec.audit, name), f"--{name.replace('_', '-')}"
        if limit is not None and f"audit.{name}" not in given:
            both = f"limits the {what} of both models together; {option} gives another"
            typer.echo(f"{path}: {name} = {limit:.10g} {both}", err=True)


def _run(a: Placed, b: Placed, asked: Asked, out: Path, quiet: bool) -> Verdict:
    """Begin the comparison in ``out``, or continue it; write result.json and report.html."""
    if (out / JOURNAL).is_file():
        with closing(SQLiteJournal(out / JOURNAL, read_only=True)) as earlier:
            begun = begun_facts(earlier.facts())
        if begun is not None and (begun.certificate is None or begun.certificate.versus is None):
            raise InputError(f"{out}: holds an audit of one model; give another --out")
    out.mkdir(parents=True, exist_ok=True)
    with _versus(a, b, asked, out) as versus, Live(versus.audit, quiet=quiet) as live:
        journal = versus.audit.journal
        with advising("once that is mended, the same command continues"):
            facts = read_facts(journal.facts())
            versus.audit.ask_all([live.update, own_progress(facts, journal)])
        run = Run(journal)
        verdict = verdict_of(write_run(run, out), run)
        steps = steps_of_two(run, Names.of(run, out), asked.gate)
        still_open = "" if verdict.decided or asked.gate else _still_open(verdict, run)
    if not quiet:
        _finish(verdict, out, steps, still_open)
    return verdict


def _versus(a: Placed, b: Placed, asked: Asked, out: Path) -> Versus:
    """Return the comparison of the models of two specs."""
    space, other = build_space(*a), build_space(*b)
    if difference := differs(space, other, *map(str, asked.specs)):
        raise InputError(
            f"versus: expected two specs that ask the same questions, got {difference}; only the "
            "[model] sections may differ"
        )
    known, earlier = asked.recorded_a is not None, None
    alone = a[0].model_copy(update={"stop": a[0].stop.model_copy(update={"gate": None})})
    _, model_a, options = build_parts(alone, a[1], space, code=not known)
    options = {name: value for name, value in options.items() if name not in ALONE}
    own = "targets" in a[0].certify.model_fields_set
    options["targets"] = asked.targets or (a[0].certify.targets if own else ["overall"])
    if asked.journal_a is not None and not (earlier := journal_at(asked.journal_a)).is_file():
        raise InputError(f"--journal-a {asked.journal_a}: expected a run folder, got another")
    targets = named_targets(space, options["targets"], options["where"])
    until = Gated.of(asked.gate, [t.id for t in targets], versus=True) if asked.gate else None
    # the comparison would end by intervals, while 'avtt gate' decides by the claim's bets
    if until is not None and asked.at_least is not None and until.only_claims(asked.at_least):
        raise InputError(
            f"--gate: expected a rule next to the claim --at-least {asked.at_least:g}, got that "
            f"claim, {asked.gate[0]!r}; leave one of the two out"
        )
    # the models' files, which distinguish two models of the same name
    files = [Path.absolute(base / (spec.model.file() or "")) for spec, base in (a, b)]
    notes: dict[str, Any] = {"begun_by": shlex.join(["avtt", *sys.argv[1:]])}
    if files[0] != files[1] and all(spec.model.file() for spec, _ in (a, b)):
        above = os.path.commonpath(files)
        notes["files"] = [file.name for file in files]
        if files[0].name == files[1].name:
            notes["files"] = [file.relative_to(above).as_posix() for file in files]
    return Versus(
        space,
        None if known else model_a,
        model_of(*b, space),
        margin=asked.margin,
        until=until,
        at_least=asked.at_least,
        recorded_a=None if asked.recorded_a is None else answers_table(asked.recorded_a),
        journal_a=earlier,
        use=asked.use,
        journal=out / JOURNAL,
        notes=notes | notes_of(a[0], os.path.abspath(a[1])),
        **options,
    )


def differs(a: QuestionSpace, b: QuestionSpace, name_a: str, name_b: str) -> str:
    """Return the first thing in which two spaces differ, in words; "" if they are the same."""
    if a.fingerprint == b.fingerprint and describe_oracle(a) == describe_oracle(b):
        return ""
    for what, one, other in zip(PARTS, _parts(a), _parts(b), strict=True):
        sides = ((name_a, one, {*other}), (name_b, other, {*one}))
        only = [(name, [part for part in own if part not in rest]) for name, own, rest in sides]
        if one != other:
            texts = [f"{some(parts, 3)} only in {name}" for name, parts in only if parts]
            return f"other {what}: {'; '.join(texts) or 'in another order'}"
    pictures = other_pictures(a.shown, b.shown) or "images or labels"
    return f"{pictures} that are not the same"


PARTS = ("relations", "severities", "concepts", "samples", "options of [oracle]", "seeds")
"""Parts in which two spaces may differ, in the order of ``_parts``."""


def _parts(space: QuestionSpace) -> list[list[str]]:
    """Return the names of each of PARTS in a space."""
    relations = [*dict.fromkeys(variant.relation.name for variant in space.variants)]
    severities = [f"{v.relation.name} {v.severity}" for v in space.variants]
    samples = [space.dataset.sample_id(index) for index in range(len(space.dataset))]
    oracle = [f"{name} {value}" for name, value in describe_oracle(space).items()]
    return [relations, severities, [*space.concepts], samples, oracle, [str(space.seed)]]


def _finish(verdict: Verdict, out: Path, steps: Sequence[Step], still_open: str) -> None:
    """Print how a comparison ended, and what may be done next."""
    a, b = verdict.names
    rows = []
    for row in verdict.targets.to_dict("records"):
        difference = in_brackets(-row["delta"], -row["upper"], -row["lower"])
        apart = "-" if math.isnan(row["disagreement"]) else percent(row["disagreement"])
        decision = DECISIONS[str(row["decision"])].format(b=brief(b))
        rows.append((row["target"], difference, decision, apart))
    columns = ("target", "in points", "decision", "disagree")
    title = f"error rate of {b} minus that of {a}"
    table = table_of(columns, rows, title, words=columns[2:3])
    print_filled("versus", table, verdict=verdict, still_open=still_open, out=out)
    print_steps(steps)


def _still_open(verdict: Verdict, run: Run) -> str:
    """Return how many differences are open, and how many more calls, of both models, would likely
    decide them."""
    result, targets = verdict.result, verdict.targets
    count = int((targets["decision"] == "open").sum())
    text = f"{count} of {len(targets)} targets {'is' if count == 1 else 'are'} open"
    made, further = to_decide(run)
    if further is None:
        return f"{text}; how many more calls that takes is not known yet"
    cost = in_money(further, result.cost, made, result.currency)
    which = "it" if count == 1 else "them"
    return f"{text}; deciding {which} would take {further} more calls{cost}"
