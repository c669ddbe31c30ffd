"""Beginning, running and reporting an audit in a folder."""

import json
import os
import shlex
import sys
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import typer

from ..audit import Audit, cheaper
from ..config import Spec, parse_spec
from ..config.building import CERTIFY_APART, build_audit, build_space, model_of
from ..config.journaled import check_program, notes_of, progress_function
from ..engine.calling import OnProgress
from ..engine.options import Certify
from ..errors import InputError, JournalError, ModelError
from ..journal import Journal, answered, begin_anew, holds_answers, read_journal
from ..journal.facts import Facts, read_facts
from ..journal.files import JOURNAL
from ..models import ModelDefaults, adapted_model
from ..results import census
from ..results.advice import Names, Step, next_steps
from ..results.report import write_report
from ..results.report.frame import check_way
from ..results.result import Result, summarise
from ..results.run import Run
from ..space import QuestionSpace
from ..strategies import EVERYTHING, default
from ..utils.files import write_text
from .progress import Live, tell_end, unreached
from .slices import quoted

MAX = 50
"""Folders that are looked into, at most."""
WIDE = 80


def begin(spec: Spec, base: Path, out: Path, named: Sequence[str], *, sample: bool = True) -> Audit:
    """A new audit in ``out``; ``named``: as ``Facts.named``. Without ``sample`` it asks everything
    where that is cheaper. Raises InputError where one stands there that holds answers.

    One without any is begun anew under this spec; see ``journal.begin_anew``. Raises JournalError
    where the code of the audit that stands there was changed since.
    """
    if holds_answers(out / JOURNAL):
        with closing(read_journal(out / JOURNAL)) as there:
            facts = read_facts(there.facts())
        if facts.certificate is not None and facts.certificate.versus is not None:
            raise InputError(
                f"{out}: holds a comparison of two models; another --out begins an audit of one"
            )
        if facts.spec is not None:  # what would keep 'avtt resume' from going on is said at once
            where = f"{out} holds an audit already"
            check_program(facts, parse_spec(facts.spec, where), where)
        raise InputError(
            f"{out}: holds an audit already; 'avtt resume {shlex.quote(str(out))}' goes on with "
            "it, another --out begins a new one"
        )
    warnings: list[str] = []

    def note_seed(space: QuestionSpace) -> None:
        used = neighbours(out, spec.audit.seed).get(space.fingerprint)
        strategy = spec.audit.strategy or default(spec.certify.certifies)
        if used is not None and strategy != EVERYTHING:  # which draws nothing
            warnings.append(warning(used, strategy))
            _warn(warnings[-1])  # the result tells it too late to begin with another seed

    space = build_space(spec, base)
    note_seed(space)  # before any code that the spec names is imported
    model = model_of(spec, base, space)
    best = cheaper.Choice() if sample else quickest(spec, space, adapted_model(model))
    if best.sentence is not None:
        typer.echo(f"{best.sentence} (--sample insists on sampling)", err=True)
        spec = everything(spec)
    elif best.changes:
        spec = changed(spec, best.changes)
    notes = {"warnings": warnings, "named": named, **notes_of(spec, os.path.abspath(base))}
    notes |= {"trial_calls": best.calls} if best.calls else {}
    return build_audit(
        spec,
        base,
        space=space,
        model=model,
        journal=partial(begin_anew, out / JOURNAL),
        notes=notes,
    )


def changed(spec: Spec, changes: Mapping[str, Any], where: str = "census") -> Spec:
    """Return the spec with other values of options, each in the section that has it."""
    table = spec.model_dump()
    for section in ("audit", "certify", "stop"):
        table[section] |= {n: value for n, value in changes.items() if n in table[section]}
    return parse_spec(table, where)


def everything(spec: Spec, budget: int | None = None) -> Spec:
    """Return the spec of the census that asks all that ``spec`` is about, whatever budget of calls
    that has: it is one for an audit that chooses. Its cap on cost counts."""
    return changed(spec, {**cheaper.WHOLE, "budget": budget})


def quickest(spec: Spec, space: QuestionSpace, model: ModelDefaults) -> cheaper.Choice:
    """Return how a model that costs no money is audited by ``spec``; see ``cheaper.choice``."""
    sections = (spec.audit, spec.certify, spec.stop)
    if cheaper.insists({n: v for section in sections for n, v in section.model_dump().items()}):
        return cheaper.Choice()
    certify = Certify(**spec.certify.model_dump(exclude={*CERTIFY_APART, "surrogate"}))
    return cheaper.choice(space, model, certify, spec.audit.budget)


def named(spec: Path | None, sets: list[str] | None, targets: list[str] | None) -> list[str]:
    """The spec with its changes, as ``Facts.named``."""
    every = [*([f"certify.targets={json.dumps(targets)}"] if targets else []), *(sets or [])]
    changes = [word for change in every for word in ("--set", change)]
    return ["--demo" if spec is None else spec.name, *changes]


def run_and_report(
    audit: Audit,
    out: Path,
    as_json: bool,
    require_certified: bool = False,
    *,
    open_it: bool = False,
    plotly: str = "inline",
    ending: Callable[[Result], str] | None = None,
) -> Result:
    """Runs the audit with live progress, then writes result.json and report.html.

    ``open_it``: the report is opened in the browser. ``plotly``: how it brings plotly.js.
    ``ending``: what else is printed, "": nothing. Exits with 3 where
    all that was asked of every target had to be known, and of one was not.
    """
    with audit.model, audit, Live(audit, quiet=as_json) as live:
        with naming_the_way_on(audit.journal, out):
            facts = read_facts(audit.journal.facts())
            audit.ask_all([live.update, own_progress(facts, audit.journal)])
        run = Run(audit.journal)
        result = write(run, out, plotly)
        steps, found = next_steps(run, Names.of(run, out)), quoted(run)
        audit.journal.check_place()
    if not as_json:
        live.finish(run, result, out)
        found += [] if ending is None else [ending(result)]
    _tell_rest(result, out, found, steps, as_json, open_it)
    if require_certified and result.unreached and run.certificate:
        typer.echo(f"avtt: {unreached(result, run.certificate)}", err=True)
        raise typer.Exit(3)
    return result


def report_again(out: Path, as_json: bool, *, open_it: bool = False) -> None:
    """Of an audit that has ended and asks nothing more: writes result.json and report.html from its
    journal, and tells what it told at its end."""
    with Run.opened(out) as run:
        result = write(run, out)
        steps, found = next_steps(run, Names.of(run, out)), quoted(run)
    if not as_json:
        typer.echo("this audit has ended: nothing was asked", err=True)
        tell_end(run, result, out)
    _tell_rest(result, out, found, steps, as_json, open_it)


def _tell_rest(
    result: Result, out: Path, lines: list[str], steps: list[Step], as_json: bool, open_it: bool
) -> None:
    """What follows the table of an audit's end; or its result alone, as JSON."""
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=1, allow_nan=False))
    else:
        for line in filter(None, lines):
            typer.echo(line)
        tell(steps)
    if open_it:
        open_report(out / "report.html")


def write(source: Journal | Run, out: Path, plotly: str = "inline") -> Result:
    """Writes result.json and report.html, of a census its tables, too; gives the result."""
    check_way(plotly)
    run = Run.of(source)
    result = summarise(run)
    text = json.dumps(result.to_dict(), indent=1, allow_nan=False)
    write_text(out / "result.json", text + "\n")
    write_report(run, out / "report.html", plotly=plotly)
    census.write(out, dict(result.census))
    return result


def rewrite(out: Path, plotly: str = "inline") -> Path:
    """Writes result.json and report.html from the journal; gives the report's path."""
    with closing(read_journal(out / JOURNAL)) as journal:
        write(journal, out, plotly)
    return out / "report.html"


def open_report(report: Path) -> None:
    """Opens it, or says that there is no browser."""
    try:
        opened = webbrowser.open(report.resolve().as_uri())
    except webbrowser.Error:
        opened = False
    if not opened:
        typer.echo(f"avtt: no browser was found; open {report.resolve()} in one", err=True)


# -- other runs beside, which may have used the same seed --------------------------------------


def neighbours(out: Path, seed: int | None) -> dict[str, dict[str, str]]:
    """Fingerprints of the spaces that runs beside ``out`` asked about with ``seed``, each with
    their strategies and, of each, the name of such a run; {} where no seed is given. Reads
    journals, writes nothing."""
    if seed is None or not out.parent.is_dir():
        return {}
    folders = sorted(f for f in out.parent.iterdir() if (f / JOURNAL).is_file())
    found: dict[str, dict[str, str]] = {}
    for folder in folders[:MAX]:
        if folder.resolve() != out.resolve():
            facts = _facts(folder / JOURNAL)
            if facts is not None and facts.settings.seed == seed:
                used = found.setdefault(facts.space.fingerprint, {})
                used.setdefault(facts.settings.strategy, folder.name)
    return found


def warning(used: dict[str, str], strategy: str) -> str:
    """Return what to say where runs used the same seed on the same space, by their strategies."""
    if strategy not in used:
        other, name = next(iter(used.items()))
        return (
            f"run {name!r} used the same seed with strategy {other!r}, this one has {strategy!r}: "
            "no draw is shared, and both certificates hold"
        )
    return (
        f"run {used[strategy]!r} asked the same questions with the same seed: if its results "
        "changed anything here (the model, a proxy), no certificate holds; give another --seed, "
        "or none"
    )


def _facts(path: Path) -> Facts | None:
    try:
        with closing(read_journal(path)) as journal:
            return read_facts(journal.facts())
    except JournalError:
        return None


# -- what may be done next, as commands to copy ------------------------------------------------


@contextmanager
def naming_the_way_on(journal: Journal, out: Path) -> Iterator[None]:
    """Errors of what is done inside, to the audit in ``out``, also say how it goes on."""
    try:
        yield
    except (InputError, ModelError, JournalError) as error:
        way = f"'avtt resume {shlex.quote(str(out))}' goes on once that is mended"
        if not answered(journal):
            way = "nothing came back yet: mend that, and the same command begins again"
        error.args = (f"{error}; {way}",)
        raise


def tell(steps: Sequence[Step]) -> None:
    """Prints what may be done next; reasons that are too long for a line stand above it."""
    if steps:
        typer.echo("next:")
    for command, why in steps:
        line = f"  {command}    # {why}"
        typer.echo(line if len(line) <= WIDE else f"  # {why}:\n  {command}")


def same_command(options: str) -> str:
    """Return the running command with ``options``, such as "--budget 90 --set stop.seconds=60", in
    place of the values that it has of these."""
    changed = shlex.split(options)
    names = [word for word in changed if word.startswith("--") and word != "--set"]
    fields = [word.partition("=")[0] for word in changed if "=" in word]
    words, given = ["avtt"], iter(sys.argv[1:])
    for word in given:
        option, equals, _ = word.partition("=")
        if option in names:
            if not equals:
                next(given, None)
        elif word == "--set":
            value = next(given, "")
            words += [] if value.partition("=")[0].strip() in fields else [word, value]
        else:
            words.append(word)
    return shlex.join([*words, *changed])


def own_progress(facts: Facts, journal: Journal) -> OnProgress | bool:
    """Return the function of the spec's [audit] on_progress; False where there is none."""
    return progress_function(facts, resumed=answered(journal) > 0, warn=_warn) or False


def _warn(message: str) -> None:
    typer.echo(f"warning: {message}", err=True)
