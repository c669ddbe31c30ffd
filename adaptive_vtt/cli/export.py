"""``avtt export``: the failing follow-ups of an audit as a dataset folder."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import typer

from ..audit.making import Making
from ..audit.shortcut import questions
from ..config import read_spec
from ..config.building import build_space
from ..config.going_on import space_of
from ..datasets import as_dataset
from ..datasets.vqa.question_table import FORMATS
from ..errors import InputError, check_known
from ..journal import Journal, read_journal
from ..journal.facts import read_facts
from ..journal.files import JOURNAL
from ..results.cautions import about_answers
from ..results.export.corrupted import KEPT_BYTES, Sources, export_corrupted
from ..results.export.disagreements import check_paired, export_disagreements
from ..results.export.failures import Exported, Format, export_failures
from ..results.export.mix import weights_of, write_mix
from ..results.export.prompt_images import TABLE, Which, count_pictures, write_pictures
from ..results.export.questions import export_questions
from ..space import QuestionSpace
from ..types import IDENTITY, JsonObject
from ..utils.random_streams import generator
from .options import names
from .progress import counting
from .signals import interrupted_as

OTHERWISE = (
    "export it from Python with "
    "adaptive_vtt.results.export.failures.export_failures(audit.journal, audit.space, ...)"
)
"""What to do about a journal that keeps no spec."""
COMPARED = (
    "export it from Python with adaptive_vtt.results.export.disagreements.export_disagreements("
    "versus.audit.journal, versus.space, ...)"
)
"""The same of a comparison."""
USAGE = {
    "--questions": "'avtt export --questions SPEC.toml --out DIR', with --sources and --hidden at "
    "most",
    "--mix": "'avtt export DIR --mix OUT', DIR a run or a SPEC.toml, with --seed and --run-code at "
    "most",
    "--disagreements": "'avtt export DIR --disagreements OUT', DIR a comparison, with --coco, "
    "--fiftyone and --run-code at most",
}
"""What stands alone, and how."""


def export(  # noqa: C901, PLR0912, PLR0913 - a command's options
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

    With --corrupted, write all images under all relations, of an audit or
    straight from a SPEC.toml or --data. Questions in words keep their words and
    options. Nothing that the run folder names is run, unless --run-code says so.

    With --mix, write what to train the model on again.

    With --disagreements, write where two models of a comparison differ.

    With --questions, write the pictures of a SPEC.toml's questions.

    Example: avtt export runs/first --failures failures

    Args:
        source (DIR): Folder that an audit wrote (its --out); with --corrupted or --mix also a
            SPEC.toml, of whose model nothing is asked.
        failures (OUT): Folder to write into; new, or empty.
        disagreements (OUT): Of a comparison ('avtt versus'): the folder for the images at which one
            model lost more than the other; new, or empty.
        tsv (FILE.tsv): Of multiple choice: a table of questions with images, as EndoBench's.
        corrupted (OUT): Folder for all images under all relations, as MedMNIST-C's .npz archives.
        mix (OUT): Folder for a training set: every image as it is, and once under a relation. Of an
            audit, relations in proportion to their certified error rates; of a SPEC.toml, in equal
            shares.
        seed (NUMBER): With --mix: same seed, same mix.
        data (PATH): With --corrupted, in place of DIR: images and labels that 'avtt init'
            recognises.
        relations (NAMES): With --data: relations and families, separated by commas, such as
            medmnistc/bloodmnist.
        least_loss: The least loss that counts as a failure, 0 to 1.
        all_: With --tsv: all questions that were asked.
        image_format: With --tsv: jpeg, as EndoBench has it, or png, which keeps all.
        questions (SPEC.toml): A SPEC.toml: every picture its audit may ask about, with a table to
            fill in with a model's answers; nothing is asked.
        out: With --questions: folder to write into; new, or empty.
        sources: With --questions: only the images as they are, for captions in [space].
        hidden: With --sources: their versions with a box hidden, too.
        coco: With --failures or --disagreements: also as COCO's JSON, coco.json.
        fiftyone: With these: also for FiftyOne, fiftyone.json.
    """
    outputs = {
        "--questions": questions,
        "--mix": mix,
        "--disagreements": disagreements,
        "--failures": failures,
        "--tsv": tsv,
        "--corrupted": corrupted,
    }
    given = [option for option, path in outputs.items() if path is not None]
    if not given:
        raise InputError(
            "export: expected --failures OUT, --disagreements OUT, --tsv FILE.tsv, --corrupted "
            "OUT, --mix OUT or --questions SPEC.toml, got none of them"
        )
    _check_alone(given, source, out, sources or hidden, data is not None or relations is not None)
    if all_ and tsv is None:
        raise InputError("--all: expected --tsv FILE.tsv beside it; --failures has failures alone")
    check_known("image format", image_format, FORMATS, "--image-format")
    wanted: dict[Format, bool] = {"coco": coco, "fiftyone": fiftyone}
    formats = [name for name, is_wanted in wanted.items() if is_wanted]
    if formats and failures is None and disagreements is None:
        raise InputError(f"--{formats[0]}: expected --failures OUT beside it, got none")
    if questions is not None and out is not None:
        counts, lines = _pictures(questions, out, sources, hidden, json_)
    elif source is not None and mix is not None:
        counts, lines = _mix(source, mix, seed, run_code)
    elif source is not None and disagreements is not None:
        counts, lines = _disagreements(source, disagreements, formats, run_code)
    else:
        counts, lines = {}, []
        asked = _asked_about(source, data, names(relations), given == ["--corrupted"], run_code)
        with asked as (journal, space):
            if journal is not None and tsv is not None:
                count = export_questions(
                    journal,
                    space,
                    tsv,
                    least_loss=least_loss,
                    everything=all_,
                    image_format=image_format,
                )
                counts["questions"] = count
                lines.append(f"wrote {tsv}: {count} questions with options and images")
            if journal is not None and failures is not None:
                written = export_failures(
                    journal, space, failures, least_loss=least_loss, formats=formats
                )
                counts |= written.as_dict()
                lines.append(_sentence(written, failures))
            if corrupted is not None:
                archives = counts["archives"] = _corrupted(journal, space, corrupted, json_)
                images, one = sum(archives.values()), next(iter(archives))
                of = f"{len(archives)} archives of {images} images in all, such as {one}"
                lines.append(f"wrote {corrupted}: {of}")
            if journal is not None and (
                warnings := about_answers(read_facts(journal.facts()), journal.calls())
            ):
                counts["warnings"] = warnings
                lines += [f"warning: {warning}" for warning in warnings]
    typer.echo(json.dumps(counts) if json_ else "\n".join(lines))


def _check_alone(
    given: list[str], source: Path | None, out: Path | None, of_pictures: bool, data: bool
) -> None:
    """Raise InputError where an option that stands alone has others beside it, or lacks its own."""
    first, pictures = given[0], given[0] == "--questions"
    wrong = len(given) > 1 or data or (source is None) != pictures
    if first in USAGE and (wrong or pictures == (out is None)):
        raise InputError(f"{first}: expected {USAGE[first]}")
    if not pictures and (of_pictures or out is not None):
        raise InputError(f"--questions: expected {USAGE['--questions']}")


def _pictures(
    path: Path, out: Path, sources: bool, hidden: bool, quiet: bool
) -> tuple[JsonObject, list[str]]:
    """Write the pictures of a spec's questions, with a table for a model's answers."""
    if hidden and not sources:
        raise InputError("--hidden: expected --sources with it; without that all is written")
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


def _mix(source: Path, out: Path, seed: int, run_code: bool) -> tuple[JsonObject, list[str]]:
    """Write a training set of images as they are and changed ones, of a run or a SPEC.toml."""
    weights = None
    if source.suffix == ".toml":
        spec, base = read_spec(source), source.parent
    else:
        where = source / JOURNAL
        with closing(read_journal(where)) as journal:
            space, spec, base = space_of(journal, str(where), OTHERWISE, run_code=run_code)
            relations = dict.fromkeys(variant.relation.name for variant in space.variants)
            changing = [name for name in relations if name != IDENTITY]
            weights = weights_of(journal, changing, str(source))
    # follow-ups of another seed: a model must not be trained on the noise it is asked about later
    apart = int(generator(seed, "mix follow-ups", spec.space.seed).integers(1, 2**31))
    named = [IDENTITY, *(name for name in spec.space.relations if name != IDENTITY)]
    section = spec.space.model_copy(update={"relations": named, "seed": apart})
    changed = build_space(spec.model_copy(update={"space": section}), base)
    images = write_mix(changed, out, weights, seed)
    counts = ", ".join(f"{count} {name}" for name, count in images.items())
    return {"mix": images}, [f"wrote {out}: {sum(images.values())} images to train on: {counts}"]


def _disagreements(
    source: Path, out: Path, formats: list[Format], run_code: bool
) -> tuple[JsonObject, list[str]]:
    """Write where two models of a comparison differ."""
    where = source / JOURNAL
    with closing(read_journal(where)) as journal:
        check_paired(read_facts(journal.facts()))
        space = space_of(journal, str(where), COMPARED, run_code=run_code, compared=True)[0]
        differ = export_disagreements(journal, space, out, formats=formats)
    (old, new), counts = differ.names, differ.folder
    line = (
        f"wrote {out}: {counts.images} images with {counts.answers} answers that differ; {old} "
        f"lost less at {differ.better_a}, {new} at {differ.better_b}; "
        f"{out / 'disagreements.csv'} has both losses"
    )
    return differ.as_dict(), [line]


@contextmanager
def _asked_about(
    source: Path | None,
    data: Path | None,
    relations: list[str] | None,
    images_alone: bool,
    run_code: bool,
) -> Iterator[tuple[Journal | None, QuestionSpace]]:
    """Yield the journal of a run folder and its space; where ``images_alone`` are wanted also the
    space of a SPEC.toml, or of data under relations."""
    if data is not None or relations is not None:
        if data is None or relations is None or source is not None or not images_alone:
            raise InputError(
                "export: expected --data PATH and --relations NAMES with --corrupted OUT alone, "
                "without DIR; answers are exported from the folder of an audit"
            )
        yield None, questions(as_dataset(data), relations).space
    elif source is None:
        raise InputError(
            "export: expected the folder of an audit, or for --corrupted a SPEC.toml or --data "
            "PATH, got none of them"
        )
    elif images_alone and source.suffix == ".toml":
        yield None, build_space(read_spec(source), source.parent)
    else:
        where = source / JOURNAL
        with closing(read_journal(where)) as journal:
            yield journal, space_of(journal, str(where), OTHERWISE, run_code=run_code)[0]


def _corrupted(
    journal: Journal | None, space: QuestionSpace, out: Path, quiet: bool
) -> dict[str, int]:
    """Write the archives, made in several processes where that saves time."""
    making = Making(space, None, Sources(space, KEPT_BYTES).made)
    images = sum(variant.relation.name != IDENTITY for variant in space.variants)
    with (
        interrupted_as(lambda: f"interrupted; {out} was not written"),
        counting("writing", images * len(space.dataset), quiet) as advance,
    ):
        return export_corrupted(journal, space, out, follow_ups=making, advance=advance)


def _sentence(written: Exported, out: Path) -> str:
    masks = "".join(f", {count} masks of {concept!r}" for concept, count in written.masks.items())
    return (
        f"wrote {out}: {written.images} images with {written.answers} failing answers{masks}; "
        f"{out / 'dataset.toml'} reads them back"
    )
