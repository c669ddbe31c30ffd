"""What the protocols of the demo server have in common: which request goes where, and bills."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from adaptive_vtt.utils import http_server
from adaptive_vtt.utils.http_server import Rejected, Request


@dataclass(frozen=True)
class Usage:
    """What a request is billed for."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class Response(http_server.Response):
    """``usage`` where something was answered."""

    usage: Usage | None = None


@dataclass(frozen=True)
class Route:
    """``path`` is a regular expression; its named groups become arguments of ``handle``.

    ``paid``: whether requests cost something, and so are what faults and delays befall; ``fails``:
    faults befall requests that cost nothing, too, before they are handled or after.
    """

    method: str
    path: str
    handle: Callable[..., Response]
    paid: bool = False
    fails: bool = False

    def match(self, request: Request) -> dict[str, str] | None:
        """The path's arguments, None where the request is for another route."""
        found = self._pattern.fullmatch(request.path)
        return found.groupdict() if found and request.method == self.method else None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.path)


class Api(Protocol):
    """One protocol: what it answers, and how it words an error."""

    @property
    def routes(self) -> tuple[Route, ...]:
        """All its routes."""

    def error(self, rejected: Rejected) -> Response:
        """The response to a request that is wrong, or that met a fault."""
