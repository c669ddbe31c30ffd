"""Beginning, running, resuming and reporting an audit in a folder."""

import json
import os
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import typer

from ..audit import Audit
from ..errors import InputError
from ..journal import (
    Journal,
    JournalSource,
    SQLiteJournal,
    begin_anew,
    closed_on_error,
    holds_answers,
    read_journal,
)
from ..journal.facts import read_facts
from ..results import Result, summarise
from ..space import QuestionSpace
from ..spec import DEMO, Spec, parse_spec, read_spec
from ..spec.building import build_audit
from ..spec.resuming import check_before_code, check_program, notes_of, spec_of
from ..utils.files import write_text
from .neighbours import neighbours, warning
from .progress import Live

JOURNAL = "journal.db"
DEMO_TAU = 0.25
"""Where the demo's exploration ends: this share of the answer GPs' uncertainty is left."""
OTHERWISE = "resume it from Python with adaptive_vtt.Audit(..., journal=...)"
"""What to do about a journal that keeps no spec."""
_SECTIONS = {
    "uncertainty": "stop",
    "half_width": "certify",
    "at_most": "certify",
    "confidence": "certify",
    "guarantee": "certify",
    "targets": "certify",
    "self_taught": "certify",
}
"""Where an option of the command line stands in a spec, if not under [audit]."""


def read(
    path: Path | None, demo: bool, changes: dict[str, Any], explore: bool = False
) -> tuple[Spec, Path]:
    """The spec, with what the command line changes, and the folder its paths start at.

    ``explore``: nothing is certified, whatever the spec says, and unless the command line names a
    strategy it is the paper's.
    """
    if (path is None) != demo:
        raise InputError(
            "expected either a SPEC.toml or --demo, got " + ("both" if demo else "neither")
        )
    spec, base = (DEMO, Path()) if path is None else (read_spec(path), path.parent)
    table = spec.model_dump()
    if explore:
        _explore(table, demo, changes)
    elif demo:
        _decide_alone(table, changes)
    for name, value in changes.items():
        if value is not None:
            table[_SECTIONS.get(name, "audit")][name] = value
    return parse_spec(table, "command line"), base


def _explore(table: dict[str, Any], demo: bool, changes: dict[str, Any]) -> None:
    """Takes what is certified out of a spec's table, and what only certificates need."""
    for name in ("half_width", "at_most"):
        if changes.get(name) is not None:
            option = name.replace("_", "-")
            raise InputError(f"expected either --explore or --{option}, got both")
        table["certify"][name] = None
    table["audit"]["strategy"] = table["audit"]["strategy_options"] = None
    if demo:
        table["stop"]["uncertainty"] = DEMO_TAU


def _decide_alone(table: dict[str, Any], changes: dict[str, Any]) -> None:
    """Takes the demo's own half-width back, where the command line names a limit and no width."""
    if changes.get("at_most") is not None:
        table["certify"]["half_width"] = None


def begin(spec: Spec, base: Path, out: Path) -> Audit:
    """A new audit in ``out``. Raises InputError where one stands there that holds answers.

    One without any is begun anew under this spec; see ``journal.begin_anew``.
    """
    if holds_answers(out / JOURNAL):
        raise InputError(
            f"{out}: holds an audit already; 'avtt resume {out}' goes on with it, "
            "another --out begins a new one"
        )
    warnings: list[str] = []

    def note_seed(space: QuestionSpace) -> None:
        used = neighbours(out, spec.audit.seed)
        if space.fingerprint in used:
            warnings.append(warning(used[space.fingerprint]))

    journal = partial(begin_anew, out / JOURNAL)
    return _build(spec, base, journal, note_seed, warnings=warnings)


def go_on(out: Path) -> Audit:
    """The audit whose journal stands in ``out``."""
    read_journal(out / JOURNAL).close()  # says so where no audit was begun
    with closed_on_error(SQLiteJournal(out / JOURNAL, must_exist=True)) as journal:
        facts = read_facts(journal.facts())
        spec, base = spec_of(facts, str(out / JOURNAL), OTHERWISE)
        check_program(facts, spec, str(out / JOURNAL))
        return _build(spec, base, journal, lambda space: check_before_code(facts, spec, space))


def run_and_report(
    audit: Audit, out: Path, as_json: bool, require_certified: bool = False
) -> Result:
    """Runs the audit with live progress, then writes result.json and report.html.

    Exits with 3 where every target had to be certified and one was not.
    """
    with audit, Live(audit, quiet=as_json) as live:
        audit.run(live.update)
        result = _write(audit.journal, out)
        audit.journal.check_place()
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=1, allow_nan=False))
    else:
        live.finish(result, out)
    done = result.targets["certified"].astype(bool)
    if "decided" in result.targets:
        done &= result.targets["decided"].notna()
    if require_certified and not bool(done.all()):
        open_ = int((~done).sum())
        typer.echo(f"avtt: {open_} of {len(result.targets)} targets are not certified", err=True)
        raise typer.Exit(3)
    return result


def rewrite(out: Path) -> Path:
    """Writes result.json and report.html from the journal; gives the report's path."""
    with closing(read_journal(out / JOURNAL)) as journal:
        _write(journal, out)
    return out / "report.html"


def _write(journal: Journal, out: Path) -> Result:
    from ..report import write_report

    result = summarise(journal)
    text = json.dumps(result.to_dict(), indent=1, allow_nan=False)
    write_text(out / "result.json", text + "\n")
    write_report(journal, out / "report.html")
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
