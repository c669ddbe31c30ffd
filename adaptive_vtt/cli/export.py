"""``avtt export``: the failing follow-ups of an audit as a dataset folder."""

import json
from pathlib import Path

import typer

from ..errors import JournalError
from ..export.failures import Exported, export_failures
from ..journal import read_journal
from ..journal.facts import read_facts
from ..spec import parse_spec
from ..spec.building import build_space
from .run_folder import JOURNAL


def export(directory: Path, out: Path, least_loss: float, as_json: bool) -> None:
    """Writes the failures of the audit in ``directory`` to ``out`` and says what was written."""
    where = directory / JOURNAL
    journal = read_journal(where)
    try:
        facts = read_facts(journal.facts())
        if facts.spec is None:
            raise JournalError(
                f"{where}: was not begun by 'avtt audit'; export it from Python with "
                "adaptive_vtt.export.failures.export_failures(audit.journal, audit.space, ...)"
            )
        space = build_space(parse_spec(facts.spec, str(where), to_run=False), Path(facts.base))
        written = export_failures(journal, space, out, least_loss=least_loss)
    finally:
        journal.close()
    typer.echo(json.dumps(written.as_dict()) if as_json else _sentence(written, out))


def _sentence(written: Exported, out: Path) -> str:
    masks = "".join(f", {count} masks of {concept!r}" for concept, count in written.masks.items())
    return (
        f"wrote {out}: {written.images} images with {written.answers} failing answers{masks}; "
        f"{out / 'dataset.toml'} reads them back"
    )
