"""``avtt export``: the failing follow-ups of an audit as a dataset folder."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import typer

from ..audit.one_line import questions as questions_about
from ..audit.rendering_ahead import Making
from ..config import read_spec
from ..config.building import build_space
from ..config.resuming import space_of
from ..datasets import as_dataset
from ..datasets.vqa.question_table import FORMATS
from ..errors import InputError, check_known, unexpected
from ..journal import Journal, read_journal
from ..journal.facts import read_facts
from ..journal.files import JOURNAL
from ..results.cautions import about_answers
from ..results.export.corrupted import KEPT_BYTES, Sources, export_corrupted
from ..results.export.failures import (
    Format,
    check_paired,
    export_disagreements,
    export_failures,
    export_questions,
)
from ..results.export.items import ITEMS, export_items
from ..results.export.mix import weights_of, write_mix
from ..results.export.prompt_images import TABLE, Which, count_pictures, write_pictures
from ..space import QuestionSpace
from ..types import IDENTITY, JsonObject
from ..utils.random_streams import generator
from .options import names
from .progress import counting
from .signals import interrupted_as

OTHERWISE = "repeat that Python, which asks nothing twice, and call result.export(FOLDER)"
"""Remedy for a journal that keeps neither a spec nor a call whose data can be read again."""
COMPARED = (
    "export it from Python with adaptive_vtt.results.export.failures.export_disagreements("
    "versus.audit.journal, versus.space, FOLDER)"
)
"""Remedy for the journal of a comparison."""
ALONE = ("--disagreements OUT", "--mix OUT", "--questions SPEC.toml")
"""Outputs that allow no other one."""

Written = tuple[JsonObject, list[str]]
"""Counts of what was written, for --json, and the lines to print without it."""


def export(  # noqa: C901, PLR0912, PLR0913, PLR0915 - a command's options
    source: Path | None = None,
    *,
    failures: Path | None = None,
    disagreements: Path | None = None,
    tsv: Path | None = None,
    corrupted: Path | None = None,
    mix: Path | None = None,
    seed: int = 0,
    data: Path | None = None,
    relations: str | None = None,
    least_loss: float = 0.5,
    all_: bool = False,
    image_format: str = "jpeg",
    questions: Path | None = None,
    out: Path | None = None,
    sources: bool = False,
    hidden: bool = False,
    coco: bool = False,
    fiftyone: bool = False,
    run_code: bool = False,
    json_: bool = False,
) -> None:
    """Export the failures as a dataset: images, labels and masks.

    With --corrupted, write all images under all relations, of an audit, a
    SPEC.toml or --data. Questions in words keep their words and options. Code
    that the run folder names is run with --run-code alone.

    With --mix, write a training set.

    With --disagreements, write the images on which two models disagree.

    With --questions, write the pictures of a SPEC.toml's questions.

    Example: avtt export runs/first --failures failures

    Args:
        source (DIR): Folder that an audit wrote (its --out); with --corrupted or --mix also a
            SPEC.toml, whose model is not called.
        failures (OUT): Folder to write into; new, or empty.
        disagreements (OUT): Folder for the images on which one model of a comparison ('avtt
            versus') has a higher loss than the other; new, or empty.
        tsv (FILE.tsv): Table of multiple-choice questions with images, in EndoBench's format.
        corrupted (OUT): Folder for all images under all relations, as MedMNIST-C's .npz archives.
        mix (OUT): Folder for a training set: every image unchanged, and once under a relation. An
            audit's relations are mixed by their certified error rates, a SPEC.toml's equally.
        seed (NUMBER): With --mix: same seed, same mix.
        data (PATH): With --corrupted, in place of DIR: images and labels that 'avtt init'
            recognises.
        relations (NAMES): With --data: relations and families, separated by commas, such as
            medmnistc/bloodmnist.
        least_loss: Least loss that counts as a failure, 0 to 1.
        all_: With --tsv: all questions that were asked.
        image_format: With --tsv: jpeg, as in EndoBench, or png, which is lossless.
        questions (SPEC.toml): Write every picture that an audit of this SPEC.toml may ask about,
            and a table to fill in with a model's answers; no model is called.
        out: With --questions: folder to write into; new, or empty.
        sources: With --questions: only the original images, for captions in [space].
        hidden: With --sources: their versions with a box hidden, too.
        coco: With --failures or --disagreements: also as COCO's JSON, coco.json.
        fiftyone: With --failures or --disagreements: also for FiftyOne, fiftyone.json.
    """
    outputs = {
        "--failures OUT": failures,
        "--tsv FILE.tsv": tsv,
        "--corrupted OUT": corrupted,
        "--disagreements OUT": disagreements,
        "--mix OUT": mix,
        "--questions SPEC.toml": questions,
    }
    given = [option for option, path in outputs.items() if path is not None]
    if not given:
        *first, last = outputs
        raise unexpected("export", f"{', '.join(first)} or {last}", "none of them")
    if len(given) > 1 and (alone := [option for option in given if option in ALONE]):
        others = ", ".join(option for option in given if option != alone[0])
        raise unexpected(alone[0].split()[0], "no other output with it", others)
    check_known("image format", image_format, FORMATS, "--image-format")
    if data is not None and (not relations or source is not None or given != ["--corrupted OUT"]):
        raise InputError(
            "export: expected --data PATH and --relations NAMES with --corrupted OUT alone, "
            "without DIR; answers are exported from the folder of an audit"
        )
    formats: Any = ["coco"] * coco + ["fiftyone"] * fiftyone
    if questions is not None:
        if source is not None or out is None:
            got = "no --out" if out is None else f"DIR {source}, too"
            raise unexpected("--questions", "a SPEC.toml and --out DIR", got)
        counts, lines = _pictures(questions, out, sources, hidden, json_)
    elif data is not None and corrupted is not None:
        space = questions_about(as_dataset(data), names(relations)).space
        counts, lines = _corrupted(None, space, corrupted, json_)
    elif source is None:
        of_audit = "the folder of an audit, or for --corrupted a SPEC.toml or --data PATH"
        raise unexpected("export", of_audit, "none of them")
    elif mix is not None:
        counts, lines = _mix(source, mix, seed, run_code)
    elif corrupted is not None and len(given) == 1 and source.suffix == ".toml":
        space = build_space(read_spec(source), source.parent)
        counts, lines = _corrupted(None, space, corrupted, json_)
    elif disagreements is not None:
        counts, lines = _disagreements(source, disagreements, formats, run_code)
    else:
        counts, lines = {}, []
        with closing(read_journal(source / JOURNAL)) as journal:
            if failures is not None and len(given) == 1 and ITEMS in journal.facts():
                counts["items"] = export_items(journal, failures, least_loss=least_loss)
                written = f"wrote {failures / 'failures.csv'}: {counts['items']} items"
                return typer.echo(json.dumps(counts) if json_ else written)
            space = space_of(journal, str(source / JOURNAL), OTHERWISE, run_code=run_code)
            if tsv is not None:
                asked: Any = {"least_loss": least_loss, "image_format": image_format}
                count = export_questions(journal, space, tsv, everything=all_, **asked)
                counts["questions"] = count
                lines.append(f"wrote {tsv}: {count} questions with options and images")
            if failures is not None:
                done = export_failures(
                    journal, space, failures, least_loss=least_loss, formats=formats
                )
                counts |= done.as_dict()
                parts = [f"{done.images} images with {done.answers} failing answers"]
                parts += [f"{count} masks of {name!r}" for name, count in done.masks.items()]
                back = f"{failures / 'dataset.toml'} reads them back"
                lines.append(f"wrote {failures}: {', '.join(parts)}; {back}")
            if corrupted is not None:
                archives, line = _corrupted(journal, space, corrupted, json_)
                counts, lines = counts | archives, lines + line
            if warnings := about_answers(read_facts(journal.facts()), journal.calls()):
                counts["warnings"] = warnings
                lines += [f"warning: {warning}" for warning in warnings]
    typer.echo(json.dumps(counts) if json_ else "\n".join(lines))


def _pictures(path: Path, out: Path, sources: bool, hidden: bool, quiet: bool) -> Written:
    """Write the pictures of a spec's questions, with a table for a model's answers."""
    which = (Which.VERSIONS if hidden else Which.SOURCES) if sources else Which.ALL
    spec = read_spec(path)
    if sources:  # captions of these may be what space.captions is to name
        spec = spec.model_copy(update={"space": spec.space.model_copy(update={"captions": None})})
    space = build_space(spec, path.parent)
    if hidden and not space.oracle.most_versions(space.dataset):
        raise InputError("--hidden: [oracle] hides no boxes of these images; leave it out")
    with counting("writing", count_pictures(space, which), quiet) as advance:
        count = write_pictures(space, out, advance, which)
    use = "space.captions" if sources else "model.answers with kind = 'recorded'"
    line = f"wrote {out}: {count} pictures; fill in {out / TABLE}, and name it as {use}"
    return {"pictures": count}, [line]


def _mix(source: Path, out: Path, seed: int, run_code: bool) -> Written:
    """Write a training set of images as they are and changed ones, of a run or a SPEC.toml."""
    weights = None
    if source.suffix == ".toml":
        space = build_space(read_spec(source), source.parent)
    else:
        where = source / JOURNAL
        with closing(read_journal(where)) as journal:
            space = space_of(journal, str(where), OTHERWISE, run_code=run_code)
            relations = dict.fromkeys(variant.relation.name for variant in space.variants)
            changing = [name for name in relations if name != IDENTITY]
            weights = weights_of(journal, changing, str(source))
    # follow-ups of another seed: a model must not be trained on the noise it is asked about later
    apart = int(generator(seed, "mix follow-ups", space.seed).integers(1, 2**31))
    images = write_mix(space.for_training(apart), out, weights, seed)
    counts = ", ".join(f"{count} {name}" for name, count in images.items())
    return {"mix": images}, [f"wrote {out}: {sum(images.values())} images to train on: {counts}"]


def _disagreements(source: Path, out: Path, formats: list[Format], run_code: bool) -> Written:
    """Write where two models of a comparison differ."""
    where = source / JOURNAL
    with closing(read_journal(where)) as journal:
        check_paired(read_facts(journal.facts()))
        space = space_of(journal, str(where), COMPARED, run_code=run_code, compared=True)
        differ = export_disagreements(journal, space, out, formats=formats)
    less = f"{differ.models['a']} lost less at {differ.better_a}, {differ.models['b']} at"
    return differ.as_dict(), [
        f"wrote {out}: {differ.images} images with {differ.answers} answers that differ; {less} "
        f"{differ.better_b}; {out / 'disagreements.csv'} has both losses"
    ]


def _corrupted(journal: Journal | None, space: QuestionSpace, out: Path, quiet: bool) -> Written:
    """Write all images under all relations, made in several processes where that saves time."""
    making = Making(space, None, Sources(space, KEPT_BYTES).made)
    changing = sum(variant.relation.name != IDENTITY for variant in space.variants)
    with (
        interrupted_as(lambda: f"interrupted; {out} was not written"),
        counting("writing", changing * len(space.dataset), quiet) as advance,
    ):
        archives = export_corrupted(journal, space, out, follow_ups=making, advance=advance)
    images, one = sum(archives.values()), next(iter(archives))
    line = f"wrote {out}: {len(archives)} archives of {images} images in all, such as {one}"
    return {"archives": archives}, [line]
