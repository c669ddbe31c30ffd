"""The [dataset] of a SPEC.toml by itself: for commands that ask no model."""

import tomllib
from pathlib import Path

from pydantic import ValidationError

from ..datasets import Dataset
from ..errors import InputError, one_line
from ..utils.toml import toml_of
from .datasets import DatasetSpec
from .section import Section
from .sentences import sentence


class _Alone(Section):
    dataset: DatasetSpec


def read_dataset(path: Path) -> Dataset:
    """The dataset of a TOML file, whose other sections are not looked at.

    Raises InputError naming file and field.
    """
    try:
        table = toml_of(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is no TOML: {one_line(error)}") from None
    try:
        spec = _Alone.model_validate({k: v for k, v in table.items() if k == "dataset"})
    except ValidationError as error:
        raise sentence(error, str(path), _Alone, table) from None
    return spec.dataset.build(path.parent)
