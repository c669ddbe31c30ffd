"""From the [model] section of a SPEC.toml to a model behind a library, a network or a pipe."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .. import models
from ..errors import InputError
from ..models import Limits, ModelUnderTest, Prices, Retries
from ..models.network.http_json import name_of_url
from ..models.network.keys import Key, from_environment, scrubbed
from . import ModelSpec
from .secrets import BARE, REFERENCE

_LIMITS = ("in_flight", "calls_per_minute", "tokens_per_minute")
_RETRIES = {"retries": "times", "timeout": "timeout"}
_PRICES = {
    "price_per_call": "per_call", "price_input": "input", "price_output": "output",
    "price_tokens": "tokens",
}  # fmt: skip
_ENCODING = {
    "image_format": "format", "image_quality": "quality", "max_image_bytes": "most_bytes",
}  # fmt: skip
_ENDPOINT = (*_LIMITS, *_RETRIES, *_PRICES, "max_reply_bytes")
_COMMON = {"kind", "name", "seed", "version"}
"""Fields that every kind has; "version" goes to those that take it, too."""
_TENSORS = ("output", "concepts", "activation", "mean", "std")

ADAPTERS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "openai": (
        "OpenAIChat", ("model",),
        (*_ENDPOINT, *_ENCODING, "url", "key", "template", "per_call", "yes_from", "detail",
         "max_tokens", "max_input_tokens", "options"),
    ),
    "open-inference": (
        "OpenInference", ("url", "model"), (*_ENDPOINT, *_TENSORS, "version", "headers")
    ),
    "http": (
        "HttpJson", ("url", "request", "response"),
        (*_ENDPOINT, *_ENCODING, "headers", "input_tokens", "output_tokens",
         "most_input_tokens", "most_output_tokens"),
    ),
    "onnx": ("OnnxModel", ("path",), (*_TENSORS, "batch_size", "providers")),
    "subprocess": ("SubprocessModel", ("command",), ("per_call", "timeout", "max_reply_bytes")),
}  # fmt: skip
"""Kind of model -> its class, the fields that it needs, and those that it takes."""


def build_adapter(section: ModelSpec, base: Path) -> ModelUnderTest:
    """The model of a section whose kind is in ADAPTERS.

    Raises InputError for a field that is missing or belongs to another kind.
    """
    made, needed, taken = ADAPTERS[section.kind]
    given = section.model_dump(exclude=_COMMON, exclude_none=True)
    if "version" in taken and section.version is not None:
        given["version"] = section.version
    for name in given:
        if name not in (*needed, *taken):
            raise InputError(f"model.{name}: is no field of kind {section.kind!r}")
    for name in needed:
        if name not in given:
            raise InputError(f"model.{name}: expected a value for this kind, got nothing")
    keys = _reveal(given)
    options = _options(section.kind, given, base, section.seed)
    if keys:
        options["keys"] = keys
    if section.name is not None:
        options["name"] = section.name
    elif section.kind == "http":
        options["name"] = name_of_url(section.url or "")  # as written, before keys are filled in
    try:
        return getattr(models, made)(**options)
    except InputError as error:
        raise InputError(scrubbed(str(error), keys)) from None


def _reveal(given: dict[str, Any]) -> list[Key]:
    """Fills in the environment's ``${NAME}`` where a spec may refer to one; gives their values.

    ``headers`` are left to the endpoint, which never lets their values go.
    """
    keys: list[Key] = []
    for field in ("url", "options", "request"):
        if field in given:
            given[field] = _filled(given[field], f"model.{field}", REFERENCE, keys)
    return keys


def _filled(value: Any, where: str, reference: re.Pattern[str], keys: list[Key]) -> Any:
    if isinstance(value, dict):
        return {
            name: _filled(
                inner, f"{where}.{name}", BARE if name == "extra_headers" else reference, keys
            )
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_filled(inner, where, reference, keys) for inner in value]
    if not isinstance(value, str):
        return value

    def found(match: re.Match[str]) -> str:
        keys.append(from_environment(match[1], where))
        text = keys[-1].reveal()
        return quote(text, safe="") if where == "model.url" else text

    return reference.sub(found, value)


def _options(kind: str, given: dict[str, Any], base: Path, seed: int) -> dict[str, Any]:
    """Fields of the section as arguments of the class."""
    if kind in ("openai", "open-inference", "http"):
        _gather(given, "limits", Limits, {name: name for name in _LIMITS})
        _gather(given, "retries", Retries, _RETRIES)
        _gather(given, "prices", Prices, _PRICES)
        _gather(given, "encoding", models.Encoding, _ENCODING)
        given["seed"] = seed
    if kind == "openai" and "url" in given:
        given["base_url"] = given.pop("url")
    if "template" in given:
        from ..models.network.prompts import template

        given["template"] = template(given["template"])
    if "per_call" in given:
        given["answers"] = given.pop("per_call")
    if kind == "onnx":
        given["path"] = base / given["path"]
    if kind == "subprocess":
        given["directory"] = base
    return given


def _gather(
    given: dict[str, Any], name: str, made: Callable[..., Any], fields: Mapping[str, str]
) -> None:
    """Replaces the fields that are given by one argument made of them."""
    options = {argument: given.pop(field) for field, argument in fields.items() if field in given}
    if options:
        given[name] = made(**options)
