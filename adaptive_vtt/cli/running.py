"""Beginning, running, resuming and reporting an audit in a folder."""

import json
import os
from pathlib import Path
from typing import Any

import typer

from ..audit import Audit
from ..errors import InputError, JournalError
from ..files import write_text
from ..journal import Journal, SQLiteJournal
from ..results import Result, summarise
from ..spec import DEMO, Spec, build_model, build_space, parse_spec, read_spec
from .progress import Live

JOURNAL = "journal.db"


def read(path: Path | None, demo: bool, changes: dict[str, Any]) -> tuple[Spec, Path]:
    """The spec, with what the command line changes, and the folder its paths start at."""
    if (path is None) != demo:
        raise InputError(
            "expected either a SPEC.toml or --demo, got " + ("both" if demo else "neither")
        )
    spec, base = (DEMO, Path()) if path is None else (read_spec(path), path.parent)
    table = spec.model_dump()
    for name, value in changes.items():
        if value is not None:
            table["stop" if name == "uncertainty" else "audit"][name] = value
    return parse_spec(table, "command line"), base


def begin(spec: Spec, base: Path, out: Path) -> Audit:
    """A new audit in ``out``. Raises InputError where one stands there already."""
    if (out / JOURNAL).exists():
        raise InputError(
            f"{out}: holds an audit already; 'avtt resume {out}' goes on with it, "
            "another --out begins a new one"
        )
    return _build(spec, base, out / JOURNAL)


def go_on(out: Path) -> Audit:
    """The audit whose journal stands in ``out``."""
    journal = SQLiteJournal(out / JOURNAL, must_exist=True)
    spec, base = _spec_of(journal, out)
    return _build(spec, base, journal)


def run_and_report(audit: Audit, out: Path, as_json: bool) -> None:
    """Runs the audit with live progress, then writes result.json and report.html."""
    with audit, Live(audit, quiet=as_json) as live:
        audit.run(live.update)
        result = _write(audit.journal, out)
    if as_json:
        typer.echo(json.dumps(result.as_dict(), indent=1, allow_nan=False))
    else:
        live.finish(result, out)


def rewrite(out: Path) -> Path:
    """Writes result.json and report.html from the journal; gives the report's path."""
    journal = SQLiteJournal(out / JOURNAL, must_exist=True)
    try:
        if "space" not in journal.facts():
            raise JournalError(f"{out / JOURNAL}: no audit was begun here")
        _write(journal, out)
    finally:
        journal.close()
    return out / "report.html"


def _write(journal: Journal, out: Path) -> Result:
    from ..report import write_report

    result = summarise(journal)
    text = json.dumps(result.as_dict(), indent=1, allow_nan=False)
    write_text(out / "result.json", text + "\n")
    write_report(journal, out / "report.html")
    return result


def _build(spec: Spec, base: Path, journal: Journal | Path) -> Audit:
    space = build_space(spec, base)
    return Audit(
        space,
        build_model(spec, base, space.dataset),
        strategy=spec.audit.strategy,
        budget=spec.audit.budget,
        stop=spec.stop.rule(),
        seed=spec.audit.seed,
        journal=journal,
        notes={"spec": spec.model_dump(), "base": os.path.abspath(base)},
        floor=spec.audit.floor,
        candidates=spec.audit.candidates,
        batch=spec.audit.batch,
        device=spec.audit.device,
    )


def _spec_of(journal: Journal, out: Path) -> tuple[Spec, Path]:
    facts = journal.facts()
    if "spec" not in facts:
        raise JournalError(
            f"{out / JOURNAL}: was not begun by 'avtt audit'; resume it from Python with "
            "adaptive_vtt.Audit(..., journal=...)"
        )
    return parse_spec(facts["spec"], str(out / JOURNAL)), Path(facts["base"])
