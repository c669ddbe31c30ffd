"""Beginning, running, resuming and reporting an audit in a folder."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from ..audit import Audit
from ..building import build_parts
from ..certify.verify import AGREE, Interval, verify
from ..certify.verify_draws import unchecked
from ..errors import InputError, JournalError
from ..files import write_text
from ..journal import Journal, SQLiteJournal
from ..results import Result, summarise
from ..spec import DEMO, Spec, parse_spec, read_spec
from .neighbours import neighbours, warning
from .progress import Live

JOURNAL = "journal.db"
_SECTIONS = {
    "uncertainty": "stop",
    "half_width": "certify",
    "at_most": "certify",
    "confidence": "certify",
    "targets": "certify",
}
"""Where an option of the command line stands in a spec, if not under [audit]."""


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
            table[_SECTIONS.get(name, "audit")][name] = value
    return parse_spec(table, "command line"), base


def begin(spec: Spec, base: Path, out: Path) -> Audit:
    """A new audit in ``out``. Raises InputError where one stands there already."""
    if (out / JOURNAL).exists():
        raise InputError(
            f"{out}: holds an audit already; 'avtt resume {out}' goes on with it, "
            "another --out begins a new one"
        )
    return _build(spec, base, out / JOURNAL, neighbours(out, spec.audit.seed))


def go_on(out: Path) -> Audit:
    """The audit whose journal stands in ``out``."""
    journal = SQLiteJournal(out / JOURNAL, must_exist=True)
    spec, base = _spec_of(journal, out)
    return _build(spec, base, journal)


def run_and_report(
    audit: Audit, out: Path, as_json: bool, require_certified: bool = False
) -> Result:
    """Runs the audit with live progress, then writes result.json and report.html.

    Exits with 3 where every target had to be certified and one was not.
    """
    with audit, Live(audit, quiet=as_json) as live:
        audit.run(live.update)
        result = _write(audit.journal, out)
    if as_json:
        typer.echo(json.dumps(result.as_dict(), indent=1, allow_nan=False))
    else:
        live.finish(result, out)
    if require_certified and not bool(result.targets["certified"].all()):
        open_ = int((~result.targets["certified"].astype(bool)).sum())
        typer.echo(f"avtt: {open_} of {len(result.targets)} targets are not certified", err=True)
        raise typer.Exit(3)
    return result


def check(out: Path) -> str:
    """Recomputes every interval from the journal; a sentence saying what was checked.

    Raises JournalError for anything that is wrong, in the journal or in result.json.
    """
    journal = SQLiteJournal(out / JOURNAL, must_exist=True)
    try:
        intervals = verify(journal)
        draws, calls = len(journal.draws()), len(journal.calls())
        missing = unchecked(journal.facts())
    finally:
        journal.close()
    if (out / "result.json").is_file():
        _compare(intervals, out / "result.json")
    what = f"{draws} draws and {calls} answers are as they were written"
    said = (
        f"all {len(intervals)} intervals follow from them" if intervals else "nothing is certified"
    )
    drawn = "every draw follows from the audit's key" if missing is None else missing
    return f"{what}; {said}; {drawn}"


def _compare(intervals: list[Interval], path: Path) -> None:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["targets"]
        stated = {row["target"]: (row["lower"], row["upper"]) for row in rows}
    except (ValueError, KeyError, TypeError):
        raise JournalError(f"{path}: expected the result of an audit, got something else") from None
    for found in intervals:
        lower, upper = stated.get(found.target, (None, None))
        if lower is None or max(abs(found.lower - lower), abs(found.upper - upper)) > AGREE:
            raise JournalError(
                f"{path}: target {found.target!r}: the journal comes to [{found.lower:.4f}, "
                f"{found.upper:.4f}], the file says [{lower}, {upper}]"
            )


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


def _build(
    spec: Spec, base: Path, journal: Journal | Path, used: Mapping[str, str] | None = None
) -> Audit:
    """``used``: fingerprints of spaces that a neighbouring run asked about with the same seed."""
    notes: dict[str, Any] = {"spec": spec.model_dump(), "base": os.path.abspath(base)}
    space, model, chosen = build_parts(spec, base)
    if used and space.fingerprint in used:
        notes["warnings"] = [warning(used[space.fingerprint])]
    return Audit(space, model, **chosen, journal=journal, notes=notes)


def _spec_of(journal: Journal, out: Path) -> tuple[Spec, Path]:
    facts = journal.facts()
    if "spec" not in facts:
        raise JournalError(
            f"{out / JOURNAL}: was not begun by 'avtt audit'; resume it from Python with "
            "adaptive_vtt.Audit(..., journal=...)"
        )
    table = facts["spec"]
    # of a version in which models followed the audit's seed
    table["model"].setdefault("seed", table["audit"]["seed"])
    return parse_spec(table, str(out / JOURNAL)), Path(facts["base"])
