"""``avtt init``: a folder that runs as it is, or a SPEC.toml for images that are there."""

import json
import os
import re
import shlex
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
import pandas as pd
import typer
from pydantic.fields import FieldInfo

from ..audit.overview import show
from ..audit.proposed import proposed
from ..certify.targets import named_targets
from ..config import Spec
from ..config.section import Section, kind_name, kinds_of, shown_default
from ..datasets import Dataset
from ..datasets.base import adapted_dataset
from ..datasets.formats.table_file import TABLES
from ..datasets.recognition import Layout, recognised
from ..datasets.scanning import ENDINGS
from ..errors import InputError, check_known
from ..models.local.model_files import lines
from ..oracles import REGISTRY as REGISTERED
from ..space import QuestionSpace
from ..types import Image
from ..utils.files import Table, write_bytes, write_text
from ..utils.image_codec import png
from ..utils.random_streams import generator
from ..utils.tables import csv_text
from ..utils.web import text_of
from .printing import plain_console

SAMPLES = 60
FILES = {*TABLES, *ENDINGS, ".md", ".toml", ".py", ".txt", ".json", ".html", ".xlsx", ".zip"}
"""Endings of files, which no folder's name has."""
ENDING = ".toml"
SHOWN = ("examples", "defaults")


def init(
    directory: Path,
    *,
    data: Path | None = None,
    model: Path | None = None,
    like: str | None = None,
    full: bool = False,
) -> None:
    """Write a SPEC.toml and a model.py to start from.

    Class folders, images beside masks, a table of labels (CSV, TSV, Parquet)
    beside images, images alone, PASCAL VOC, COCO, YOLO, MedMNIST's .npz,
    EndoBench's table and Hugging Face's folders are recognised.

    Example: avtt init my-audit && avtt audit my-audit/SPEC.toml

    Args:
        directory (DIR): Folder to write into.
        data: Your images: a folder, or a table of labels. Default: those in DIR.
        model: Your model's file, to be wrapped: .onnx, .pt or .pth (torch), .joblib or .pkl
            (scikit-learn).
        like (NAME): A spec to start from instead: see 'avtt list specs'.
        full: Every field that there is, described, with defaults.
    """
    if like is not None:
        if data is not None or model is not None or full:
            raise InputError("--like: expected neither --data, --model nor --full beside it")

        path = write_like(directory, like)
        name = shlex.quote(str(path))
        typer.echo(f"wrote {path}\nnext:\n  change what is marked with <- in {name}")
        typer.echo(f"  avtt audit {name} --dry-run    # what it may take\n  avtt audit {name}")
        return

    if model is not None and not model.is_file():
        raise InputError(f"--model: file {str(model)!r} does not exist")
    written = write_first(directory, data, full, model)
    path = directory / "SPEC.toml"
    spec, code = (shlex.quote(str(path.with_name(name))) for name in ("SPEC.toml", "model.py"))
    if written is None:
        typer.echo(f"wrote {path}, a model and images to try it on\nnext:")
    else:
        typer.echo(f"found {written.found}")
        show(written.space, written.targets, "all", plain_console(), written.why)
        typer.echo(f"wrote {path}\nnext:")
        if model is None:
            typer.echo(f"  make predict in {code} call your model")
        else:
            wraps = code if written.model else spec
            typer.echo(f"  look whether {wraps} prepares images as your model was trained")
    typer.echo(f"  avtt audit {spec} --dry-run    # what it may take\n  avtt audit {spec}")


def bundled() -> dict[str, str]:
    """Name -> text of every spec."""
    folder = files("adaptive_vtt.experiments").joinpath("specs")
    found = [path for path in folder.iterdir() if path.name.endswith(ENDING)]
    texts = {p.name.removesuffix(ENDING): p.read_text(encoding="utf-8") for p in found}
    return dict(sorted(texts.items()))


def about(text: str) -> str:
    """What a spec audits: its comment up to the first colon or full stop."""
    lines = text.splitlines()
    head = lines[: next((k for k, line in enumerate(lines) if line[:1] != "#"), len(lines))]
    said = " ".join(line.strip("# ") for line in head)
    return re.split(r"[.:] ", said)[0].rstrip(".")


def write_like(directory: Path, name: str) -> Path:
    """A bundled spec as ``directory``/SPEC.toml; raises InputError for an unknown name, and where
    one is there already."""
    specs, path = bundled(), directory / "SPEC.toml"
    check_known("spec", name, specs, "--like")
    if path.exists():
        raise InputError(f"{path}: stands there already; nothing was written")
    write_text(path, specs[name])
    return path


def write_first(
    directory: Path, data: Path | None = None, full: bool = False, model: Path | None = None
) -> "First | None":
    """SPEC.toml and model.py about the images in ``data`` or, without it, in ``directory``; where
    that holds none, as ``write_start``, and None. Files that are there already are not overwritten.
    ``model``: a file that model.py wraps; one that exists already would be left as it is.

    Raises InputError where a SPEC.toml is there, and for images whose layout nobody knows.
    """
    _refuse_file(directory)
    _refuse_existing(directory, "SPEC.toml", *(["model.py"] if model is not None else []))
    if data is None and not _holds_data(directory):
        if model is not None:
            raise InputError("--model: expected images, in DIR or by --data, beside it")
        write_start(directory, full)
        return None

    layout = recognised(directory if data is None else data)
    written = first(layout, directory, model=model)
    text = written.spec
    if full:
        text += "\n# Every field there is, with its default, or with an example.\n"
        text += commented_spec({})
    write_text(directory / "SPEC.toml", text)
    if written.model and not (directory / "model.py").exists():
        write_text(directory / "model.py", written.model)
    return written


def _refuse_file(directory: Path) -> None:
    """For a name that is a file's, or looks like one: nobody wants a folder README.md."""
    if directory.is_file() or (not directory.exists() and directory.suffix.lower() in FILES):
        raise InputError(
            f"{directory}: expected a folder to write into, got the name of a file; images or "
            "labels that are there are named by --data: avtt init DIR --data FOLDER"
        )


def _refuse_existing(directory: Path, *names: str) -> None:
    for name in names:
        if (directory / name).exists():
            raise InputError(f"{directory / name}: stands there already; nothing was written")


def _holds_data(directory: Path) -> bool:
    """Whether there is an image or a table of labels in the folder or below."""
    endings = {*ENDINGS, *TABLES}
    return any(path.suffix.lower() in endings for path in directory.rglob("*"))


# -- a folder that runs as it is ---------------------------------------------------------------


def write_start(directory: Path, full: bool = False) -> Path:
    """Writes SPEC.toml, model.py, labels.csv and images/; refuses to overwrite any.

    ``full``: with every field that there is, described.
    """
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
    write_text(directory / "SPEC.toml", commented_spec(SET) if full else _short(directory))
    return directory / "SPEC.toml"


def _short(directory: Path) -> str:
    layout = Layout("table", directory / "labels.csv", {"images": directory / "images"})
    return first(layout, directory, budget=200, half_width=0.15).spec


def _shape(bright: bool, disc: bool, rng: np.random.Generator) -> Image:
    """A 48 x 48 grey picture of one disc or square, light or dim, on a dark ground."""
    image = rng.integers(10, 40, (48, 48, 1), dtype=np.uint8)
    centre, radius = rng.integers(18, 30, 2), int(rng.integers(8, 15))
    rows, columns = np.ogrid[:48, :48]
    down, across = rows - centre[0], columns - centre[1]
    distance = np.hypot(down, across) if disc else np.maximum(abs(down), abs(across))
    image[distance <= radius] = rng.integers(200, 250) if bright else rng.integers(90, 140)
    return image


# -- a SPEC.toml in about fifteen lines for images that somebody has ---------------------------


HEAD = "# What to audit, and how. Every field, with its default: avtt init DIR --full\n"
WIDTH = 36
"""Columns before a comment, where the line leaves them free."""
WRAPPED = (
    '"""The model under test: the file that holds it, wrapped."""\n\nfrom pathlib import Path\n\n'
)


@dataclass(frozen=True)
class First:
    """What ``avtt init`` writes for a layout: SPEC.toml and model.py, what was recognised, the
    questions about it, the names of the targets, and why it is these."""

    spec: str
    model: str
    found: str
    space: QuestionSpace
    targets: list[str]
    why: str


def first(
    layout: Layout,
    base: Path,
    *,
    budget: int = 500,
    half_width: float = 0.1,
    model: Path | None = None,
) -> First:
    """For the data in ``layout``, as seen from the folder ``base``, and the file of a ``model``.
    Raises InputError for data that cannot be used."""
    if layout.kind == "masks":  # a frame that shows nothing has nothing to lose sight of
        layout = replace(layout, options={**layout.options, "empty": "skip"})
    if layout.kind == "table" and "images" not in layout.options:
        raise InputError(
            f"{layout.path}: found none of its images: no column has names of image files in "
            f"{str(layout.path.parent)!r} or below; write their names into a column, or put the "
            "table beside their folder"
        )
    layout, dataset = _loaded(layout)
    dataset.sample(0)  # an audit reads that, too
    code, proposal = _model(layout, dataset), proposed(dataset)
    targets = [*proposal.targets]
    named: Table = {"target": "model.py:predict"}
    if model is not None and model.suffix == ".onnx":
        code = ""
        named = {"kind": "onnx", "path": seen_from(base, model), "concepts": [*dataset.concepts]}
    elif model is not None:
        file = f"Path(__file__).parent / {seen_from(base, model)!r}"
        code = WRAPPED + lines(model, file, len(dataset.concepts))
        named = {"target": "model.py:predict" if "def predict" in code else "model.py:network"}
    sections: dict[str, Table] = {
        "dataset": _dataset(layout, base),
        "model": named,
        "space": {"relations": [*proposal.relations]},
        "oracle": {"kind": proposal.oracle},
        "audit": {"budget": budget},
        "certify": {"half_width": half_width, "targets": targets},
    }
    text = "".join(_section(name, fields) for name, fields in sections.items() if fields)
    oracle = REGISTERED.make(proposal.oracle, {})
    space = QuestionSpace(dataset, proposal.relations, oracle=oracle)
    names = [target.name for target in named_targets(space, targets)]
    return First(HEAD + text, code, _found(layout, dataset), space, names, proposal.why)


def _loaded(layout: Layout) -> tuple[Layout, Dataset]:
    """The dataset; of a table that lacks some images without their rows, as the spec will have it.
    Raises InputError for data that cannot be used."""
    try:
        return layout, layout.load()
    except InputError:
        if layout.kind in ("table", "coco", "voc", "yolo"):
            without = replace(layout, options={**layout.options, "broken": "skip"})
            with suppress(InputError):  # the first error is the one to tell of
                return without, without.load()
        raise


def _dataset(layout: Layout, base: Path) -> Table:
    path = seen_from(base, layout.path)
    options = {
        name: [seen_from(base, each) for each in value]
        if isinstance(value, list) and any(isinstance(each, Path) for each in value)
        else seen_from(base, value)
        if isinstance(value, Path)
        else value
        for name, value in layout.options.items()
    }
    if layout.kind == "table":
        if options.get("id_column") == "id":
            del options["id_column"]
        return {"labels": path, **options}
    own = {"classes": "own"} if layout.kind == "classes" else {}
    return {
        "kind": layout.kind,
        "labels" if layout.kind == "coco" else "path": path,
        **own,
        **options,
    }


def seen_from(base: Path, path: Path) -> str:
    """``path`` from ``base``; absolute where the two have nothing in common but the root."""
    whole = Path(os.path.abspath(path))
    if os.path.commonpath([whole, os.path.abspath(base)]) == whole.anchor:
        return whole.as_posix()
    return Path(os.path.relpath(path, base)).as_posix()


def _section(name: str, fields: Mapping[str, Any]) -> str:
    lines = [f"\n[{name}]\n"]
    for field, value in fields.items():
        line = f"{field} = {json.dumps(value, ensure_ascii=False)}"
        known = _field_texts("comments")
        told = ", ".join(value) if field == "targets" else str(value)
        lines.append(_line(line, known.get(f"{name}.{field}") or known.get(told, "")))
    return "".join(lines)


def _line(line: str, comment: str) -> str:
    """With its comment behind it, or above it where both would pass 80 columns."""
    if not comment:
        return f"{line}\n"
    beside = f"{line:<{WIDTH}}  # {comment}"
    return f"{beside}\n" if len(beside) <= 80 else f"# {comment}\n{line}\n"


def _model(layout: Layout, dataset: Dataset) -> str:
    concepts = [*dataset.concepts]
    if adapted_dataset(dataset).asks(0):
        return text_of(__package__, "worded_model.py")
    if layout.kind == "masks":
        returns = "n masks, 1 x H x W, of bool or P(yes)"
        stub = "[np.zeros((1, *image.shape[:2]), bool) for image in images]"
    else:
        returns = "an array n x CONCEPTS of P(yes)"
        stub = "np.full((len(images), len(CONCEPTS)), 0.5)"
    names = json.dumps(concepts, ensure_ascii=False)
    return text_of(__package__, "stub_model.py", concepts=names, returns=returns, stub=stub)


def _found(layout: Layout, dataset: Dataset) -> str:
    names = list(dataset.concepts)
    beside = f"; {layout.apart}" if layout.apart else ""
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    what = {
        "classes": f"in {len(names)} class folders ({shown})",
        "masks": "with masks",
        "images": "without labels",
        "table": f"with a table of labels ({shown})",
        "voc": f"with boxes ({shown})",
        "coco": f"with boxes ({shown})",
        "yolo": f"with boxes ({shown})",
        "medmnist": f"of a MedMNIST archive ({shown})",
        "endobench": f"with questions in words ({shown})",
        "hugging-face": f"of a Hugging Face dataset ({shown})",
    }
    return f"{len(dataset)} images {what[layout.kind]}{beside}"


# -- a SPEC.toml with every field, described ---------------------------------------------------


SET: dict[tuple[str, str], Any] = {
    ("dataset", "labels"): "labels.csv",
    ("dataset", "images"): "images",
    ("model", "target"): "model.py:predict",
    ("space", "relations"): ["identity", "gaussian_noise", "brightness_down", "rotation"],
    ("audit", "budget"): 200,
    ("certify", "half_width"): 0.15,
    ("certify", "targets"): ["overall", "relations"],
}
SECTIONS = {
    "dataset": "The images and their labels; each kind with its fields.",
    "model": "The model under test; each kind with its fields.",
    "detector": "What finds things in images; without this section, annotated boxes if any.",
    "oracle": "What makes an answer wrong; each kind with its fields.",
}
CODE = "file.py:name"
"""Stands for kinds that are other people's code."""


def commented_spec(chosen: Mapping[tuple[str, str], Any]) -> str:
    """SPEC.toml with every field described; those that are not ``chosen``, by section and name, are
    commented out."""
    head = "# What to audit, and how. Paths start at this file's folder. Behind # stand all other\n"
    parts = [f"{head}# fields, with their defaults, or with an example where they have none.\n"]
    for section, info in Spec.model_fields.items():
        kinds = kinds_of(info.annotation)
        head = f"[{section}]" if chosen and info.default is not None else f"# [{section}]"
        parts.append(f"\n# {SECTIONS.get(section) or kinds[0].__doc__}\n{head}\n")
        described: set[tuple[str, str | None]] = set()
        for kind in kinds:
            values = {n: v for (s, n), v in chosen.items() if s == section and kind is kinds[0]}
            parts.append(_kind(section, kind, values, described))
    return "".join(parts)


def _kind(
    section: str,
    kind: type[Section],
    values: Mapping[str, Any],
    described: set[tuple[str, str | None]],
) -> str:
    """The fields of a section, or of one kind of it; those ``described`` before are only named."""
    lines, again = [], []
    for name, field in kind.model_fields.items():
        if name == "kind":
            lines.append(f"# {kind.__doc__}\n# kind = {json.dumps(kind_name(kind) or CODE)}\n")
        elif (name, field.description) in described:
            again.append(name)
        else:
            described.add((name, field.description))
            shown = example(section, kind_name(kind), name)
            lines.append(_field(name, field, values.get(name), shown))
    if again:
        lines.append(f"# and, as above: {', '.join(again)}\n")
    return "".join(lines)


@cache
def _field_texts(*tables: str) -> Table:
    """What the tables of field_examples.toml say of fields."""
    text = files(__package__).joinpath("field_examples.toml").read_text(encoding="utf-8")
    return {name: told for table in tables for name, told in tomllib.loads(text)[table].items()}


def example(section: str, kind: str | None, name: str) -> Any:
    """The field's default, else a value it might have; None where neither is known."""
    keys, known = (f"{section}.{kind}.{name}", f"{section}.{name}", name), _field_texts(*SHOWN)
    return next((known[key] for key in keys if key in known), None)


def _field(name: str, field: FieldInfo, value: Any, instead: Any) -> str:
    """``instead``: what is shown of a field that is not set and has no default here."""
    default = None if field.is_required() else shown_default(field)
    given = next((v for v in (value, default, instead) if v is not None), None)
    shown = _toml(given, field.annotation)
    line = f"{name} = {shown}" if value is not None else f"# {name} = {shown}"
    return f"# {field.description}{_words(field.annotation)}\n{line}\n"


def _toml(value: Any, annotation: Any) -> str:
    """A value as TOML, or, where there is none, an empty table or list."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_toml(v, None)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(each, None) for each in value) + "]"
    if value is not None:
        return json.dumps(value)
    return "{}" if any(get_origin(kind) is dict for kind in _sides(annotation)) else "[]"


def _sides(annotation: Any) -> tuple[Any, ...]:
    """The types of a union; ``Literal[...] | None`` is one of another class than ``int | None``."""
    union = get_origin(annotation) in (Union, UnionType)
    return get_args(annotation) if union else (annotation,)


def _words(annotation: Any) -> str:
    """The words that may be chosen, for a comment."""
    words = [
        w for kind in _sides(annotation) if get_origin(kind) is Literal for w in get_args(kind)
    ]
    return f" ({', '.join(words)})" if words else ""
