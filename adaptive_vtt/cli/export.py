"""``avtt export``: the failing follow-ups of an audit as a dataset folder."""

import json
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from ..config.going_on import space_of
from ..datasets.vqa import question_table
from ..errors import InputError
from ..journal import read_journal
from ..journal.files import JOURNAL
from ..results.export.corrupted import export_corrupted
from ..results.export.failures import Exported, Format, export_failures
from ..results.export.questions import export_questions
from ..types import JsonObject
from .options import Json, RunCode, RunDir

OTHERWISE = (
    "export it from Python with "
    "adaptive_vtt.results.export.failures.export_failures(audit.journal, audit.space, ...)"
)
"""What to do about a journal that keeps no spec."""


def export(
    directory: RunDir,
    failures: Annotated[
        Path | None,
        typer.Option("--failures", help="Folder to write into; new, or empty.", metavar="OUT"),
    ] = None,
    tsv: Annotated[
        Path | None,
        typer.Option(
            "--tsv",
            help="Of multiple choice: a table of questions with images, as EndoBench's.",
            metavar="FILE.tsv",
        ),
    ] = None,
    corrupted: Annotated[
        Path | None,
        typer.Option(
            "--corrupted",
            help="Folder for all images under all relations, as MedMNIST-C's .npz archives.",
            metavar="OUT",
        ),
    ] = None,
    least_loss: Annotated[
        float, typer.Option(help="The least loss that counts as a failure, 0 to 1.")
    ] = 0.5,
    everything: Annotated[
        bool, typer.Option("--all", help="With --tsv: all questions that were asked.")
    ] = False,
    image_format: Annotated[
        str,
        typer.Option(help="With --tsv: jpeg, as EndoBench has it, or png, which keeps all."),
    ] = "jpeg",
    coco: Annotated[
        bool, typer.Option("--coco", help="With --failures: also as COCO's JSON, coco.json.")
    ] = False,
    fiftyone: Annotated[
        bool, typer.Option("--fiftyone", help="With --failures: also for FiftyOne, fiftyone.json.")
    ] = False,
    run_code: RunCode = False,
    as_json: Json = False,
) -> None:
    """Write the images that were answered wrongly, with labels and masks, as a dataset.

    With --corrupted, write all images under all relations. Questions in words
    keep their words and options. Nothing that the run folder names is run,
    unless --run-code says so.

    Example: avtt export runs/first --failures failures
    """
    if failures is None and tsv is None and corrupted is None:
        raise InputError(
            "export: expected --failures OUT, --tsv FILE.tsv or --corrupted OUT, got none of them"
        )
    if everything and tsv is None:
        raise InputError("--all: expected --tsv FILE.tsv beside it; --failures has failures alone")
    extra: dict[Format, bool] = {"coco": coco, "fiftyone": fiftyone}
    formats = [name for name, wanted in extra.items() if wanted]
    if formats and failures is None:
        raise InputError(f"--{formats[0]}: expected --failures OUT beside it, got none")
    chosen = question_table.format_named(image_format, "--image-format")
    told: JsonObject = {}
    lines = []
    where = directory / JOURNAL
    with closing(read_journal(where)) as journal:
        space, *_ = space_of(journal, str(where), OTHERWISE, run_code=run_code)
        if tsv is not None:
            count = export_questions(
                journal,
                space,
                tsv,
                least_loss=least_loss,
                everything=everything,
                image_format=chosen,
            )
            told["questions"] = count
            lines.append(f"wrote {tsv}: {count} questions with options and images")
        if failures is not None:
            written = export_failures(
                journal, space, failures, least_loss=least_loss, formats=formats
            )
            told |= written.as_dict()
            lines.append(_sentence(written, failures))
        if corrupted is not None:
            archives = export_corrupted(journal, space, corrupted)
            told["archives"] = archives
            images, one = sum(archives.values()), next(iter(archives))
            lines.append(
                f"wrote {corrupted}: {len(archives)} archives of {images} images in all, such as "
                f"{one}"
            )
    typer.echo(json.dumps(told) if as_json else "\n".join(lines))


def _sentence(written: "Exported", out: Path) -> str:
    masks = "".join(f", {count} masks of {concept!r}" for concept, count in written.masks.items())
    return (
        f"wrote {out}: {written.images} images with {written.answers} failing answers{masks}; "
        f"{out / 'dataset.toml'} reads them back"
    )
