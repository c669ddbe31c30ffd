"""Beginning, running, resuming and reporting an audit in a folder."""

import json
import os
import shlex
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import typer

from ..audit import Audit
from ..config import Spec, TrackSpec
from ..config.building import build_audit
from ..config.journaled import notes_of
from ..errors import InputError
from ..journal import (
    Journal,
    JournalSource,
    begin_anew,
    holds_answers,
    read_journal,
)
from ..journal.facts import read_facts
from ..journal.files import JOURNAL
from ..results.result import Result, summarise
from ..space import QuestionSpace
from ..utils.files import write_text
from .browser import open_report
from .neighbours import neighbours, warning
from .next_step import naming_the_way_on, next_steps, tell
from .progress import Live, unreached
from .slices import quoted
from .tracking import following


def begin(spec: Spec, base: Path, out: Path) -> Audit:
    """A new audit in ``out``. Raises InputError where one stands there that holds answers.

    One without any is begun anew under this spec; see ``journal.begin_anew``.
    """
    if holds_answers(out / JOURNAL):
        with closing(read_journal(out / JOURNAL)) as there:
            certificate = read_facts(there.facts()).certificate
        if certificate is not None and certificate.versus is not None:
            raise InputError(
                f"{out}: holds a comparison of two models; another --out begins an audit of one"
            )
        raise InputError(
            f"{out}: holds an audit already; 'avtt resume {shlex.quote(str(out))}' goes on with "
            "it, another --out begins a new one"
        )
    warnings: list[str] = []

    def note_seed(space: QuestionSpace) -> None:
        used = neighbours(out, spec.audit.seed)
        if space.fingerprint in used:
            warnings.append(warning(used[space.fingerprint]))

    journal = partial(begin_anew, out / JOURNAL)
    return _build(spec, base, journal, note_seed, warnings=warnings)


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
    ``ending``: what else is printed. Exits with 3 where all that was asked of every target had to
    be known, and of one was not.
    """
    section = _tracking(audit.journal)
    with audit, following(audit, section, out) as hooks, Live(audit, quiet=as_json) as live:
        with naming_the_way_on(audit.journal, out):
            audit.run([live.update, *hooks])
        result = write(audit.journal, out, plotly)
        for hook in hooks:
            hook.keep(out)
        steps, slices = next_steps(out, audit.journal, result), quoted(audit.journal)
        audit.journal.check_place()
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=1, allow_nan=False))
    else:
        live.finish(result, out)
        for line in slices:
            typer.echo(line)
        if ending is not None:
            typer.echo(ending(result))
        tell(steps)
    if open_it:
        open_report(out / "report.html")
    if require_certified and not bool(result.reached.all()):
        typer.echo(f"avtt: {unreached(result, audit.certify)}", err=True)
        raise typer.Exit(3)
    return result


def _tracking(journal: Journal) -> TrackSpec | None:
    """The [track] section that the journal keeps."""
    section = (read_facts(journal.facts()).spec or {}).get("track")
    return None if section is None else TrackSpec.model_validate(section)


def rewrite(out: Path, plotly: str = "inline") -> Path:
    """Writes result.json and report.html from the journal; gives the report's path."""
    with closing(read_journal(out / JOURNAL)) as journal:
        write(journal, out, plotly)
    return out / "report.html"


def write(journal: Journal, out: Path, plotly: str = "inline") -> Result:
    """Writes result.json and report.html, and gives the result."""
    from ..results.report import write_report
    from ..results.report.plotly_library import check_way

    check_way(plotly)

    result = summarise(journal)
    text = json.dumps(result.to_dict(), indent=1, allow_nan=False)
    write_text(out / "result.json", text + "\n")
    write_report(journal, out / "report.html", plotly=plotly)
    return result


def _build(
    spec: Spec,
    base: Path,
    journal: JournalSource,
    check: Callable[[QuestionSpace], None],
    **notes: Any,
) -> Audit:
    """``check`` sees the space before any code that the spec names is imported."""
    notes.update(notes_of(spec, os.path.abspath(base)))
    return build_audit(spec, base, check=check, journal=journal, notes=notes)
