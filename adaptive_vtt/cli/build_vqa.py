"""``avtt build-vqa``: multiple-choice questions about images that somebody labelled."""

import json
from pathlib import Path
from typing import Annotated

import typer

from .options import Json, names, pairs

PER_CLASS = 20


def build_vqa(
    data: Annotated[
        Path,
        typer.Argument(
            help="A folder of images with masks, boxes or classes, a table of labels, or a "
            "SPEC.toml, for its \\[dataset].",
            metavar="DATA",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder to write into; new, or empty.")],
    kinds: Annotated[
        str | None,
        typer.Option(help="Kinds of questions, with commas. Default: all that can be made."),
    ] = None,
    concepts: Annotated[
        str | None, typer.Option(help="Labels to ask about, with commas. Default: all.")
    ] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(
            help="What a label names: instrument, landmark, organ, grade ... Default: lesion.",
            metavar="LABEL=ROLE",
        ),
    ] = None,
    word: Annotated[
        list[str] | None,
        typer.Option(help="What a label is called in questions.", metavar="LABEL=TEXT"),
    ] = None,
    count: Annotated[
        list[str] | None,
        typer.Option(help="The column that counts a label's objects.", metavar="LABEL=COLUMN"),
    ] = None,
    grade: Annotated[
        list[str] | None,
        typer.Option(help="The column that grades a label.", metavar="LABEL=COLUMN"),
    ] = None,
    per_class: Annotated[
        int,
        typer.Option(
            help="Most questions per kind, label and right answer, of images unlike each other."
        ),
    ] = PER_CLASS,
    features: Annotated[
        str,
        typer.Option(
            help="What makes images alike: efficientnet-lite0 (extra 'embedding'), thumbnails, "
            "or auto: the first where it is installed."
        ),
    ] = "auto",
    scene: Annotated[str, typer.Option(help="EndoBench's scene, such as Colonoscopy.")] = "",
    seed: Annotated[int, typer.Option(help="Same seed, same questions.")] = 0,
    as_json: Json = False,
) -> None:
    """Make multiple-choice questions in EndoBench's format from labels, masks or boxes.

    Presence, type, severity, counting, position, grounding, selection and
    recognition of regions; a question that the labels cannot answer for sure is
    not made.

    Example: avtt build-vqa Kvasir-SEG --out questions --scene Colonoscopy
    """
    from .built_folder import Wanted, told, write_built

    wanted = Wanted(
        kinds=names(kinds),
        concepts=names(concepts),
        roles=pairs(role, "--role", "LABEL=ROLE"),
        words=pairs(word, "--word", "LABEL=TEXT"),
        counts=pairs(count, "--count", "LABEL=COLUMN"),
        grades=pairs(grade, "--grade", "LABEL=COLUMN"),
        per_class=per_class,
        features=features,
        scene=scene,
        seed=seed,
    )
    written = write_built(data, out, wanted)
    typer.echo(json.dumps(written.as_dict(), indent=1) if as_json else told(written, out))
