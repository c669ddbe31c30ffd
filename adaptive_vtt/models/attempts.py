"""How an attempt at a call ends: with a reply, or with trouble that says what to do next."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

from .base import Unanswered, Value
from .prices import Usage


@dataclass(frozen=True)
class Reply:
    """What the model said, one value per concept, and the tokens that the server counted.

    ``usage`` is None where the server does not count: such a reply costs the most it can.
    """

    said: tuple[Value, ...] | Unanswered
    usage: Usage | None = None


Next = Literal["again", "leave", "stop"]
"""Try the call again; leave it unanswered; or end the audit, since no call can succeed."""

RETRIED = (408, 409, 429)
HOPELESS = {
    401: "the key is wrong or missing",
    402: "the account has no funds left",
    403: "the key is not allowed to do this",
    404: "no such model or address",
}


class Trouble(Exception):
    """A failed attempt.

    ``kind`` is counted and reported ("http 503", "timeout"); ``detail`` is for an error's
    sentence; ``asked`` is the Retry-After in seconds; ``billed``: the server may have charged
    for the attempt, and nobody told us: ``usage`` where it did tell.
    """

    def __init__(
        self,
        kind: str,
        detail: str = "",
        *,
        then: Next = "again",
        asked: float | None = None,
        billed: bool = False,
        usage: Usage | None = None,
    ) -> None:
        super().__init__()
        self.kind, self.detail, self.then = kind, detail, then
        self.asked, self.billed, self.usage = asked, billed, usage

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else self.kind


def of_status(status: int, headers: Mapping[str, str], detail: str) -> Trouble:
    """The trouble with an HTTP status that is no success.

    A request that was refused is not billed; nor, by the custom of the trade, is one that
    the server failed at.
    """
    if status in HOPELESS:
        return Trouble(f"http {status}", f"{HOPELESS[status]}: {detail}", then="stop")
    if status in RETRIED or status >= 500:
        asked = retry_after(headers.get("retry-after"), datetime.now(UTC))
        return Trouble(f"http {status}", detail, asked=asked)
    return Trouble(f"http {status}", detail, then="leave")


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds from a Retry-After header: a number, or an HTTP date (RFC 9110, 10.2.3).

    None where there is none, or it cannot be read.
    """
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - now).total_seconds())
    except (TypeError, ValueError):
        return None
