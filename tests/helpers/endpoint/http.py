"""Common parts of the demo server's protocols: routes, responses and usage."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from adaptive_vtt.utils import http_server
from adaptive_vtt.utils.http_server import Rejected, Request


@dataclass(frozen=True)
class Usage:
    """Billed tokens of a request."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class Response(http_server.Response):
    """Response with the usage of an answered request, None for others."""

    usage: Usage | None = None


@dataclass(frozen=True)
class Route:
    """Requests of a method and a path, and the function that handles them.

    Attributes:
        path: Regular expression, whose named groups become arguments of ``handle``.
        paid: Whether requests cost something, so that they have delays and faults.
        fails: Whether requests that cost nothing have faults, before or after they are handled.
    """

    method: str
    path: str
    handle: Callable[..., Response]
    paid: bool = False
    fails: bool = False

    def match(self, request: Request) -> dict[str, str] | None:
        """Return the path's arguments, None if the request is for another route."""
        match = self._pattern.fullmatch(request.path)
        return match.groupdict() if match and request.method == self.method else None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.path)


class Api(Protocol):
    """One protocol: its routes and its error responses."""

    @property
    def routes(self) -> tuple[Route, ...]:
        """All routes of the protocol."""

    def error(self, rejected: Rejected) -> Response:
        """Return the response to a wrong request, or to one with a fault."""
