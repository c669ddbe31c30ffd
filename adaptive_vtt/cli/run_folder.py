"""Begin, run and report an audit in a folder."""

import json
import os
import shlex
import sys
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import typer

from ..audit import Audit, all_or_sample
from ..config import Spec, parse_spec
from ..config.building import CERTIFY_APART, build_audit, build_space, model_of
from ..config.journaled import check_program, newer_model, notes_of, progress_function
from ..engine.calling import OnProgress
from ..engine.options import Certify
from ..engine.predictors import teaches
from ..errors import InputError, JournalError, ModelError
from ..journal import Journal, answered, begin_anew, holds_answers, read_journal
from ..journal.facts import Facts, read_facts
from ..journal.files import JOURNAL
from ..models import adapted_model
from ..results.advice import Names, Step, next_steps, with_options
from ..results.report.page import write_run
from ..results.result import Result
from ..results.run import Run
from ..strategies import EVERYTHING, default
from .printing import print_json
from .progress import Live, print_end, still_open
from .slices import quoted

MAX = 50
"""Most folders next to a new run that are searched for its seed."""
WIDE = 80
"""Most columns of a command with its reason on one line."""


def begin(spec: Spec, base: Path, out: Path, words: Sequence[str], *, sample: bool = True) -> Audit:
    """Begin an audit in a folder; a journal there without answers is begun again under this spec.

    Args:
        spec: The spec of the audit.
        base: Folder at which the paths of the spec start.
        out: Folder of the run.
        words: The spec and its changes, as ``Facts.named``.
        sample: Whether questions are drawn even if asking everything is cheaper.

    Raises:
        InputError: ``out`` has answers already.
        JournalError: It has answers, and the code of their audit has changed.
    """
    if holds_answers(out / JOURNAL):
        with closing(read_journal(out / JOURNAL)) as journal:
            facts = read_facts(journal.facts())
        if facts.certificate is not None and facts.certificate.versus is not None:
            raise InputError(
                f"{out}: holds a comparison of two models; another --out begins an audit of one"
            )
        if facts.spec is not None:  # an error of 'avtt resume' comes before the advice to resume
            where = f"{out} holds an audit already"
            check_program(facts, parse_spec(facts.spec, where), where)
        raise InputError(
            f"{out}: holds an audit already; 'avtt resume {shlex.quote(str(out))}' continues it, "
            "another --out begins a new one"
        )
    space = build_space(spec, base)
    strategy = spec.audit.strategy or default(spec.certify.certifies)
    warnings: list[str] = []
    if strategy != EVERYTHING and (twin := same_seed(out, space.fingerprint, strategy, spec)):
        warnings.append(
            f"run {twin!r} asked the same questions with the same seed: if its results changed "
            "anything here (the model, a proxy), no certificate holds; give another --seed, or none"
        )
        _warn(warnings[0])  # before any code that the spec names is imported
    model, best = model_of(spec, base, space), all_or_sample.Choice()
    options = dict(spec.audit) | dict(spec.certify) | dict(spec.stop)
    if not sample and not all_or_sample.insists(options):
        certify = Certify(**spec.certify.model_dump(exclude={*CERTIFY_APART, "surrogate"}))
        best = all_or_sample.choice(space, adapted_model(model), certify, spec.audit.budget)
    if best.sentence is not None:
        typer.echo(f"{best.sentence} (--sample insists on sampling)", err=True)
        spec = everything(spec)
    elif best.changes:
        spec = _changed(spec, best.changes)
    if space.dataset.has_images:  # which takes seconds, and prints nothing else
        certify = Certify(**spec.certify.model_dump(exclude={*CERTIFY_APART, "surrogate"}))
        doing = "training a small helper model on" if teaches(certify, space, None) else "reading"
        typer.echo(f"preparing: {doing} your {len(space.dataset):,} images ...", err=True)
    notes = {"warnings": warnings, "named": words, **notes_of(spec, os.path.abspath(base))}
    notes |= {"trial_calls": best.calls} if best.calls else {}
    begun = partial(begin_anew, out / JOURNAL)
    return build_audit(spec, base, space=space, model=model, journal=begun, notes=notes)


def same_seed(out: Path, fingerprint: str, strategy: str, spec: Spec) -> str | None:
    """Return the name of a run next to ``out`` that draws the same questions: with the same seed,
    space and strategy. None if there is none."""
    if spec.audit.seed is None or not out.parent.is_dir():
        return None
    folders = sorted(f for f in out.parent.iterdir() if (f / JOURNAL).is_file())
    for folder in folders[:MAX]:
        if folder.resolve() == out.resolve():
            continue
        try:
            with closing(read_journal(folder / JOURNAL)) as journal:
                facts = read_facts(journal.facts())
        except JournalError:
            continue
        same = facts.settings.seed, facts.settings.strategy, facts.space.fingerprint
        if same == (spec.audit.seed, strategy, fingerprint):
            return folder.name
    return None


def _changed(spec: Spec, changes: Mapping[str, Any]) -> Spec:
    """Return the spec with other values of options, each in the section that has it."""
    table = spec.model_dump()
    for section in ("audit", "certify", "stop"):
        table[section] |= {n: value for n, value in changes.items() if n in table[section]}
    return parse_spec(table, "census")


def everything(spec: Spec, budget: int | None = None) -> Spec:
    """Return the spec of a census of the same questions. The cap on cost stays; ``budget`` replaces
    the spec's budget of calls, which is meant for a sample."""
    return _changed(spec, {**all_or_sample.WHOLE, "budget": budget})


def named(spec: Path | None, sets: list[str] | None, targets: list[str] | None) -> list[str]:
    """Return the spec and its changes, as ``Facts.named``."""
    changes = [f"certify.targets={json.dumps(targets)}"] if targets else []
    words = [word for change in (*changes, *(sets or [])) for word in ("--set", change)]
    return ["--demo" if spec is None else spec.name, *words]


def run_and_report(
    audit: Audit,
    out: Path,
    as_json: bool,
    require_certified: bool = False,
    *,
    open_it: bool = False,
    plotly: str = "inline",
) -> Result:
    """Run an audit with live progress, then write result.json and report.html.

    Args:
        audit: The audit, which is closed afterwards.
        out: Folder of the run.
        as_json: Print the result as JSON, and nothing else.
        require_certified: Exit with 3 where a target is not known as precisely as asked.
        open_it: Open the report in the browser.
        plotly: Where the report has plotly.js.
    """
    with audit.model, audit, Live(audit, quiet=as_json) as live:
        with advising_to_resume(audit.journal, out):
            facts = read_facts(audit.journal.facts())
            audit.ask_all([live.update, own_progress(facts, audit.journal)])
        run = Run(audit.journal)
        result = write_run(run, out, plotly=plotly)
        steps, lines = next_steps(run, Names.of(run, out)), quoted(run)
        audit.journal.check_place()
    if not as_json:
        live.finish(run, result, out)
    _print_rest(result, out, lines, steps, as_json, open_it)
    if require_certified and result.unreached and run.certificate:
        typer.echo(f"avtt: {still_open(result, run.certificate, whole=False)}", err=True)
        raise typer.Exit(3)
    return result


def report_again(out: Path, as_json: bool, *, open_it: bool = False) -> None:
    """Write result.json and report.html of an audit that has ended, and print its end again."""
    with Run.opened(out) as run:
        result = write_run(run, out)
        steps, lines = next_steps(run, Names.of(run, out)), quoted(run)
        newer = newer_model(run.facts, out / JOURNAL)
    if not as_json:
        typer.echo("this audit has ended: nothing was asked", err=True)
        if newer is not None:
            _warn(f"{newer.name} was changed since: a new --out asks what it answers now")
        print_end(run, result, out)
    _print_rest(result, out, lines, steps, as_json, open_it)


def _print_rest(
    result: Result, out: Path, lines: list[str], steps: list[Step], as_json: bool, open_it: bool
) -> None:
    """Print lines and next steps after the table; or the result alone, as JSON."""
    if as_json:
        print_json(result.to_dict())
    else:
        for line in filter(None, lines):
            typer.echo(line)
        print_steps(steps)
    if open_it:
        open_report(out / "report.html")


def rewrite(out: Path, plotly: str = "inline") -> Path:
    """Write result.json and report.html from the journal; return the report's path."""
    with Run.opened(out) as run:
        write_run(run, out, plotly=plotly)
    return out / "report.html"


def open_report(report: Path) -> None:
    """Open a report, or print that there is no browser."""
    try:
        opened = webbrowser.open(report.resolve().as_uri())
    except webbrowser.Error:
        opened = False
    if not opened:
        typer.echo(f"avtt: no browser opens; open {report.resolve()} in one", err=True)


@contextmanager
def advising_to_resume(journal: Journal, out: Path) -> Iterator[None]:
    """Append to errors raised inside how to continue the audit in ``out``."""
    try:
        yield
    except (InputError, ModelError, JournalError) as error:
        advice = f"once that is mended, 'avtt resume {shlex.quote(str(out))}' continues"
        if not answered(journal):
            advice = "no answer was received yet: correct it, and run the same command again"
        elif part := getattr(error, "part", ""):  # its code may change, as a model's may
            journal.set_facts(parts_failed=sorted({*journal.facts().get("parts_failed", ()), part}))
        error.args = (f"{error}; {advice}",)
        raise


def print_steps(steps: Sequence[Step]) -> None:
    """Print the next steps. A reason that does not fit behind its command stands above it."""
    if steps:
        typer.echo("next:")
    for command, why in steps:
        line = f"  {command}    # {why}"
        typer.echo(line if len(line) <= WIDE else f"  # {why}\n  {command}")


def same_command(options: str) -> str:
    """Return the running command with ``options``, which replace those of the same name."""
    return with_options(shlex.join(["avtt", *sys.argv[1:]]), options)


def own_progress(facts: Facts, journal: Journal) -> OnProgress | bool:
    """Return the function of the spec's [audit] on_progress; False if there is none."""
    return progress_function(facts, resumed=partial(answered, journal), warn=_warn) or False


def _warn(message: str) -> None:
    typer.echo(f"warning: {message}", err=True)
