"""``avtt export``: the failing follow-ups of an audit as a dataset folder."""

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Json, RunCode, RunDir

if TYPE_CHECKING:
    from ..export.failures import Exported

OTHERWISE = (
    "export it from Python with "
    "adaptive_vtt.export.failures.export_failures(audit.journal, audit.space, ...)"
)
"""What to do about a journal that keeps no spec."""


def export(
    directory: RunDir,
    failures: Annotated[
        Path, typer.Option("--failures", help="Folder to write into; new, or empty.", metavar="OUT")
    ],
    least_loss: Annotated[
        float, typer.Option(help="The least loss that counts as a failure, 0 to 1.")
    ] = 0.5,
    run_code: RunCode = False,
    as_json: Json = False,
) -> None:
    """Write the images that were answered wrongly, with labels and masks, as a dataset.

    Nothing that the run folder names is run, unless --run-code says so.

    Example: avtt export runs/first --failures failures
    """
    written = _export(directory, failures, least_loss, run_code)
    typer.echo(json.dumps(written.as_dict()) if as_json else _sentence(written, failures))


def _export(directory: Path, out: Path, least_loss: float, run_code: bool) -> "Exported":
    from ..export.failures import export_failures
    from ..journal import read_journal
    from ..journal.facts import read_facts
    from ..journal.files import JOURNAL
    from ..spec.building import build_space
    from ..spec.code import refuse_code
    from ..spec.resuming import check_program, spec_of

    where = directory / JOURNAL
    with closing(read_journal(where)) as journal:
        facts = read_facts(journal.facts())
        spec, base = spec_of(facts, str(where), OTHERWISE, to_run=False)
        if run_code:
            check_program(facts, spec, str(where))
        else:
            refuse_code(spec, str(where), "--run-code runs it, if it is as it was then")
        space = build_space(spec, base)
        return export_failures(journal, space, out, least_loss=least_loss)


def _sentence(written: "Exported", out: Path) -> str:
    masks = "".join(f", {count} masks of {concept!r}" for concept, count in written.masks.items())
    return (
        f"wrote {out}: {written.images} images with {written.answers} failing answers{masks}; "
        f"{out / 'dataset.toml'} reads them back"
    )
