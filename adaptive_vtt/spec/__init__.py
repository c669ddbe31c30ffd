"""SPEC.toml: what to audit, written down. Every field is described here, and only here."""

import tomllib
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from ..errors import InputError, one_line, unknown
from .audit import AuditSpec, CertifySpec, SpaceSpec, StopSpec
from .dataset import DatasetSpec, DetectorSpec
from .model import ModelSpec
from .oracle import OracleSpec
from .secrets import refuse_secrets
from .section import Section

__all__ = [
    "DEMO", "AuditSpec", "CertifySpec", "DatasetSpec", "DetectorSpec", "ModelSpec", "OracleSpec",
    "SpaceSpec", "Spec", "StopSpec", "parse_spec", "read_spec",
]  # fmt: skip


class Spec(Section):
    """A whole SPEC.toml."""

    dataset: DatasetSpec
    model: ModelSpec
    detector: DetectorSpec | None = None
    space: SpaceSpec = SpaceSpec.model_validate({})
    oracle: OracleSpec = OracleSpec.model_validate({})
    audit: AuditSpec = AuditSpec.model_validate({})
    stop: StopSpec = StopSpec.model_validate({})
    certify: CertifySpec = CertifySpec.model_validate({})


DEMO = Spec.model_validate(
    {
        "dataset": {"kind": "fashion"},
        "model": {
            "kind": "python",
            "target": "adaptive_vtt.models.demo.fashion_cnn:predict",
            "name": "fashion-cnn",
        },
        "space": {
            "relations": [
                "identity", "gaussian_noise", "defocus_blur", "brightness_up",
                "brightness_down", "contrast_down", "rotation",
            ]
        },
        "audit": {"budget": 3000, "seed": 0},
        "certify": {
            "half_width": 0.08,
            "targets": [
                "overall", "relations", "concept:footwear", "concept:upper body",
                "concept:long sleeves", "concept:covers legs",
            ],
        },
    }
)  # fmt: skip


_MAY_HOLD_KEYS = tuple(
    (name,) for name in ("url", "key", "headers", "options", "request", "command")
)
"""Fields of [model] whose values no message repeats."""


def read_spec(path: Path) -> Spec:
    """The spec at ``path``; raises InputError naming file and field."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is no TOML: {one_line(error)}") from None
    return parse_spec(table, str(path))


def parse_spec(table: dict[str, Any], where: str, *, to_run: bool = True) -> Spec:
    """A spec from a table as TOML or JSON gives it; raises InputError naming the field.

    ``to_run``: its model may be built and its text journaled, so that a key written out in it is
    an error, too; False reads what an older version journaled.
    """
    try:
        spec = Spec.model_validate(table)
    except ValidationError as error:
        raise _sentence(error, where) from None
    if to_run:
        refuse_secrets(spec.model, where)
    return spec


def _sentence(error: ValidationError, where: str) -> InputError:
    """The first thing wrong, in one sentence with the field and, for names, the nearest one."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        *path, name = [str(part) for part in first["loc"]]
        return unknown("field", name, _fields(path), f"{where}: {'.'.join(path) or 'top level'}")
    if first["type"] == "missing":
        return InputError(f"{where}: {field}: expected this section or field, got nothing")
    if first["type"] == "literal_error":
        choices = first["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        return unknown("value", str(first["input"]), choices, f"{where}: {field}")
    expected = first["msg"].removeprefix("Input should be ").lower()
    got = repr(first["input"])
    if first["loc"][:1] == ("model",) and first["loc"][1:2] in _MAY_HOLD_KEYS:
        got = f"{type(first['input']).__name__}, not repeated as it may hold a key"
    return InputError(f"{where}: {field}: expected {expected}, got {got}")


def _fields(path: list[str]) -> list[str]:
    model: type[BaseModel] = Spec
    for part in path:
        annotation = model.model_fields[part].annotation
        options = [annotation, *get_args(annotation)]
        model = next(o for o in options if isinstance(o, type) and issubclass(o, BaseModel))
    return list(model.model_fields)
