"""Filling in the environment's ``${NAME}`` where a [model] section may refer to one."""

import re
from types import TracebackType
from typing import Any
from urllib.parse import quote

from ..errors import InputError
from ..models.network.keys import Key, from_environment, scrubbed
from .secrets import BARE, REFERENCE

_REFERRING = ("url", "options", "provider", "request")
"""Fields whose texts may refer to the environment, and headers, which the endpoint fills in."""


class Filled:
    """A section's fields with keys filled in, while a model is built of them.

    An InputError that is raised within is raised again without the keys.
    """

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = dict(given)
        self._keys: list[Key] = []

    def __enter__(self) -> tuple[dict[str, Any], list[Key]]:
        for field in self._given:
            if field in _REFERRING:
                self._given[field] = self._filled(self._given[field], f"model.{field}", REFERENCE)
        return self._given, self._keys

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if isinstance(error, InputError):
            raise InputError(scrubbed(str(error), self._keys)) from None

    def _filled(self, value: Any, where: str, reference: re.Pattern[str]) -> Any:
        if isinstance(value, dict):
            return {
                name: self._filled(
                    inner, f"{where}.{name}", BARE if name == "extra_headers" else reference
                )
                for name, inner in value.items()
            }
        if isinstance(value, list):
            return [self._filled(inner, where, reference) for inner in value]
        return self._text(value, where, reference) if isinstance(value, str) else value

    def _text(self, text: str, where: str, reference: re.Pattern[str]) -> str:
        def found(match: re.Match[str]) -> str:
            self._keys.append(from_environment(match[1], where))
            key = self._keys[-1].reveal()
            return quote(key, safe="") if where == "model.url" else key

        return reference.sub(found, text)
