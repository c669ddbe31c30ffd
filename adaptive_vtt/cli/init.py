"""``avtt init``: write a folder that runs as it is, or a SPEC.toml for images of yours."""

import json
import os
import re
import shlex
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import numpy as np
import pandas as pd
import typer
from pydantic.fields import FieldInfo

from ..audit.overview import show
from ..audit.proposed import proposed
from ..certify.targets import named_targets
from ..config import Spec
from ..config.section import kind_name, kinds_of, shown_default
from ..datasets import Dataset
from ..datasets.base import adapted_dataset
from ..datasets.formats.table_file import TABLES
from ..datasets.recognition import Layout, recognised
from ..datasets.scanning import ENDINGS
from ..errors import InputError, check_known, some
from ..models.local.files import lines
from ..oracles import REGISTRY as REGISTERED
from ..space import QuestionSpace
from ..types import Image
from ..utils.files import Table, write_bytes, write_text
from ..utils.image_codec import png
from ..utils.random_streams import generator
from ..utils.tables import csv_text
from ..utils.web import text_of
from .printing import filled, plain_console

SAMPLES = 60
FILES = {*TABLES, *ENDINGS, ".md", ".toml", ".py", ".txt", ".json", ".html", ".xlsx", ".zip"}
"""Endings of files; DIR is no folder if it has one of them."""
ENDING = ".toml"
WRAPPED = (
    '"""The model under test: the file that holds it, wrapped."""\n\nfrom pathlib import Path\n\n'
)


def init(
    directory: Path,
    *,
    data: Path | None = None,
    model: Path | None = None,
    like: str | None = None,
    full: bool = False,
) -> None:
    """Write a SPEC.toml and a model.py to start from.

    It recognises class folders, images with masks, images with a table of labels
    (CSV, TSV, Parquet), images alone, PASCAL VOC, COCO, YOLO, MedMNIST's .npz,
    EndoBench's table and Hugging Face's folders.

    Example: avtt init my-audit && avtt audit my-audit/SPEC.toml

    Args:
        directory (DIR): Folder to write into.
        data: Your images: a folder, or a table of labels. Default: those in DIR.
        model: Your model's file: .onnx, .pt or .pth (torch), .joblib or .pkl (scikit-learn).
            model.py then calls it.
        like (NAME): A spec to start from instead: see 'avtt list specs'.
        full: Write every field, with its description and default.
    """
    path, code = directory / "SPEC.toml", shlex.quote(str(directory / "model.py"))
    spec, todo = shlex.quote(str(path)), ""
    if like is not None:
        if data is not None or model is not None or full:
            raise InputError("--like: expected neither --data, --model nor --full with it")
        write_like(directory, like)
        todo = f"change what is marked with <- in {spec}"
    else:
        if model is not None and not model.is_file():
            raise InputError(f"--model: file {str(model)!r} does not exist")
        if (written := write_first(directory, data, full, model)) is not None:
            typer.echo(f"recognised {written.summary}")
            show(written.space, written.targets, "all", plain_console())
            todo = f"make predict in {code} call your model"
            if model is not None:
                wraps = code if written.model else spec
                todo = f"look whether {wraps} prepares images as your model was trained"
    typer.echo(filled("init", path=path, spec=spec, todo=todo))


def bundled() -> dict[str, str]:
    """Return the text of every bundled spec by its name."""
    folder = files("adaptive_vtt.experiments").joinpath("specs")
    paths = sorted((p for p in folder.iterdir() if p.name.endswith(ENDING)), key=lambda p: p.name)
    return {path.name.removesuffix(ENDING): path.read_text(encoding="utf-8") for path in paths}


def about(text: str) -> str:
    """Return what a spec audits: its comment up to the first colon or full stop."""
    comment = re.match(r"(#.*\n)*", text)
    words = " ".join(line.strip("# ") for line in (comment[0] if comment else "").splitlines())
    return re.split(r"[.:] ", words)[0].rstrip(".")


def write_like(directory: Path, name: str) -> None:
    """Write a bundled spec as ``directory``/SPEC.toml. Raise InputError for an unknown name, and
    where one is there already."""
    specs = bundled()
    check_known("spec", name, specs, "--like")
    _refuse_existing(directory, "SPEC.toml")
    write_text(directory / "SPEC.toml", specs[name])


def _refuse_existing(directory: Path, *names: str) -> None:
    for name in names:
        if (directory / name).exists():
            raise InputError(f"{directory / name}: exists already; nothing was written")


class First(NamedTuple):
    """The SPEC.toml and model.py for a layout, what was recognised, the questions about it, and
    the names of the targets."""

    spec: str
    model: str
    summary: str
    space: QuestionSpace
    targets: list[str]


def write_first(
    directory: Path, data: Path | None = None, full: bool = False, model: Path | None = None
) -> First | None:
    """Write SPEC.toml and model.py about the images in ``data`` or ``directory``.

    Without images there, write some, too, as ``write_start``, and return None. ``model``: a file
    that model.py wraps. Raise InputError if a file would be overwritten, and for images in an
    unknown layout.
    """
    if directory.is_file() or (not directory.exists() and directory.suffix.lower() in FILES):
        raise InputError(
            f"{directory}: expected a folder to write into, got the name of a file; images or "
            "labels that are there are named by --data: avtt init DIR --data FOLDER"
        )
    _refuse_existing(directory, "SPEC.toml", *(["model.py"] if model is not None else []))
    endings = {*ENDINGS, *TABLES}
    if data is None and not any(path.suffix.lower() in endings for path in directory.rglob("*")):
        if model is not None:
            raise InputError("--model: expected images, in DIR or by --data, with it")
        write_start(directory, full)
        return None
    written = first(recognised(directory if data is None else data), directory, model=model)
    heading = "\n# Every field there is, with its default, or with an example.\n"
    write_text(directory / "SPEC.toml", written.spec + (heading + commented_spec({})) * full)
    if written.model and not (directory / "model.py").exists():
        write_text(directory / "model.py", written.model)
    return written


def write_start(directory: Path, full: bool = False) -> Path:
    """Write SPEC.toml (with every field, where ``full``), model.py, labels.csv and images/; refuse
    to overwrite any."""
    _refuse_existing(directory, "SPEC.toml", "model.py", "labels.csv", "images")
    labels = []
    for number in range(SAMPLES):
        rng = generator(0, "init", number)
        bright, disc = bool(rng.random() < 0.5), bool(rng.random() < 0.4)
        name = f"shape-{number:02}"
        write_bytes(directory / "images" / f"{name}.png", png(_shape(bright, disc, rng)))
        labels.append({"id": name, "bright": int(bright), "round": int(disc)})
    write_text(directory / "labels.csv", csv_text(pd.DataFrame(labels)))
    write_text(directory / "model.py", text_of(__package__, "shapes_model.py"))
    layout = Layout("table", directory / "labels.csv", {"images": directory / "images"})
    short = first(layout, directory, budget=200, half_width=0.15).spec
    write_text(directory / "SPEC.toml", commented_spec(field_texts("chosen")) if full else short)
    return directory / "SPEC.toml"


def _shape(bright: bool, disc: bool, rng: np.random.Generator) -> Image:
    """Draw a 48 x 48 grey picture of one disc or square, light or dim, on a dark ground."""
    image = rng.integers(10, 40, (48, 48, 1), dtype=np.uint8)
    centre, radius = rng.integers(18, 30, 2), int(rng.integers(8, 15))
    rows, columns = np.ogrid[:48, :48]
    down, across = rows - centre[0], columns - centre[1]
    distance = np.hypot(down, across) if disc else np.maximum(abs(down), abs(across))
    image[distance <= radius] = rng.integers(200, 250) if bright else rng.integers(90, 140)
    return image


# -- a SPEC.toml in about fifteen lines for images that somebody has ---------------------------


def first(
    layout: Layout,
    base: Path,
    *,
    budget: int = 500,
    half_width: float = 0.1,
    model: Path | None = None,
) -> First:
    """Propose an audit.

    Args:
        layout: The data.
        base: Folder of the SPEC.toml, from which its paths start.
        budget: Calls, at most.
        half_width: What is certified, as a share.
        model: File of the model, to be wrapped.

    Raises:
        InputError: The data cannot be used.
    """
    if layout.kind == "masks":  # an image without an object cannot lose it
        layout = replace(layout, options={**layout.options, "empty": "skip"})
    if layout.kind == "table" and "images" not in layout.options:
        raise InputError(
            f"{layout.path}: expected a column with names of image files in "
            f"{str(layout.path.parent)!r} or below, got none; write their names into a column, or "
            "put the table next to their folder"
        )
    layout, dataset = _loaded(layout)
    dataset.sample(0)  # an audit reads that, too
    concepts, proposal = [*dataset.concepts], proposed(dataset)
    code, named = _stub(layout, dataset), Table(target="model.py:predict")
    if model is not None and model.suffix == ".onnx":
        code, named = "", {"kind": "onnx", "path": seen_from(base, model), "concepts": concepts}
    elif model is not None:
        file = f"Path(__file__).parent / {seen_from(base, model)!r}"
        code = WRAPPED + lines(model, file, len(concepts))
        named = {"target": "model.py:predict" if "def predict" in code else "model.py:network"}
    sections: dict[str, Table] = {
        "dataset": _dataset(layout, base),
        "model": named,
        "space": {"relations": [*proposal.relations]},
        "oracle": {"kind": proposal.oracle},
        "audit": {"budget": budget},
        "certify": {"half_width": half_width, "targets": [*proposal.targets]},
    }
    given: Any = {"sections": sections, "comments": field_texts("comments")}
    text = text_of(__package__, "first.toml", json=partial(json.dumps, ensure_ascii=False), **given)
    space = QuestionSpace(dataset, proposal.relations, oracle=REGISTERED.make(proposal.oracle, {}))
    targets = [target.name for target in named_targets(space, [*proposal.targets])]
    template = field_texts("layouts").get(layout.kind, "with boxes ({names})")
    shown = template.format(count=len(concepts), names=some(concepts, 4))
    summary = f"{len(dataset)} images {shown}"
    summary += f"; {layout.apart}" if layout.apart else ""
    return First(text, code, summary, space, targets)


def _loaded(layout: Layout) -> tuple[Layout, Dataset]:
    """Return a layout and its dataset, without the rows of a table whose images are missing. Raise
    InputError for data that cannot be used."""
    try:
        return layout, layout.load()
    except InputError:
        if layout.kind in ("table", "coco", "voc", "yolo"):
            without = replace(layout, options={**layout.options, "broken": "skip"})
            with suppress(InputError):  # the first error is the one to show
                return without, without.load()
        raise


def _dataset(layout: Layout, base: Path) -> Table:
    """Return the [dataset] of a layout."""

    def from_base(value: Any) -> Any:
        if isinstance(value, list):
            return [*map(from_base, value)]
        return seen_from(base, value) if isinstance(value, Path) else value

    path = seen_from(base, layout.path)
    options = {name: from_base(value) for name, value in layout.options.items()}
    if layout.kind == "table":
        if options.get("id_column") == "id":  # as it is by default
            del options["id_column"]
        return {"labels": path, **options}
    classes = {"classes": "own"} if layout.kind == "classes" else {}
    where = "labels" if layout.kind == "coco" else "path"
    return {"kind": layout.kind, where: path, **classes, **options}


def seen_from(base: Path, path: Path) -> str:
    """Return ``path`` from ``base``; absolute where the two share only the root."""
    whole = Path(os.path.abspath(path))
    if os.path.commonpath([whole, os.path.abspath(base)]) == whole.anchor:
        return whole.as_posix()
    return Path(os.path.relpath(path, base)).as_posix()


def _stub(layout: Layout, dataset: Dataset) -> str:
    """Return a model.py whose function is to be filled in."""
    name = "worded_model.py" if adapted_dataset(dataset).asks(0) else "stub_model.py"
    concepts = json.dumps([*dataset.concepts], ensure_ascii=False)
    return text_of(__package__, name, concepts=concepts, masks=layout.kind == "masks")


# -- a SPEC.toml with every field, described ---------------------------------------------------


def commented_spec(chosen: Mapping[str, Any]) -> str:
    """Return a SPEC.toml with every field described. Fields are commented out unless ``chosen`` has
    a value for SECTION.FIELD."""
    words = {"sections": Spec.model_fields, "texts": field_texts("sections"), "chosen": chosen}
    functions: Any = {"kinds_of": kinds_of, "kind_name": kind_name, "example": example}
    functions |= {"shown_value": shown_value, "toml": _toml}
    return text_of(__package__, "every_field.toml", **words, **functions)


@cache
def field_texts(*tables: str) -> Table:
    """Return the texts about fields in some tables of field_examples.toml."""
    text = files(__package__).joinpath("field_examples.toml").read_text(encoding="utf-8")
    return {name: words for table in tables for name, words in tomllib.loads(text)[table].items()}


def example(section: str, kind: str | None, name: str) -> Any:
    """Return the field's default, else a value it might have; None if neither is known."""
    known = field_texts("examples", "defaults")
    keys = (f"{section}.{kind}.{name}", f"{section}.{name}", name)
    return next((known[key] for key in keys if key in known), None)


def shown_value(field: FieldInfo, value: Any, instead: Any) -> tuple[list[str], Any]:
    """Return the words that a field may have, and its value to show.

    That is ``value``, else the default, else ``instead``, else an empty table or list.
    """
    default = None if field.is_required() else shown_default(field)
    values = (value, default, instead)
    union = get_origin(field.annotation) in (Union, UnionType)
    sides = get_args(field.annotation) if union else (field.annotation,)
    empty: Any = {} if any(get_origin(side) is dict for side in sides) else []
    words = [word for side in sides if get_origin(side) is Literal for word in get_args(side)]
    return words, next((v for v in values if v is not None), empty)


def _toml(value: Any) -> str:
    if value and isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):  # of tables, too
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)
