"""The two outcomes of an attempt at a call: a `Reply`, or a `Trouble` that says what to do next."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

from ...errors import InputError, ModelError, one_line
from ...types import Unanswered, Value
from .prices import Usage


@dataclass(frozen=True)
class Reply:
    """The reply of a model.

    Attributes:
        values: One value per concept.
        usage: The tokens that the server counted; None: it counted none, so the attempt costs the
            most that it can.
        text: The raw reply.
        wanted: Whether it has P(yes) in the mode that was asked for; None: unknown, as the model
            refused or the reply was cut off.
        served: Field of the reply -> name of the model or system that made it.
    """

    values: tuple[Value, ...] | Unanswered
    usage: Usage | None = None
    text: str = ""
    wanted: bool | None = True
    served: Mapping[str, str] = field(default_factory=dict)


Next = Literal["again", "leave", "stop"]
"""Try the call again; leave it unanswered; or end the audit, since no call can succeed."""

MALFORMED, TOO_LONG = "malformed reply", "reply too long"
NO_REPLY = re.compile(f"http [0-9]{{3}}|{MALFORMED}|{TOO_LONG}|truncated|provider error")
"""Kinds of trouble with a text that is no model's reply, such as the error page of a gateway."""
REPLIED = (MALFORMED, TOO_LONG)
"""Kinds of trouble with a server that is up and reachable, as it did reply."""
RETRIED = (408, 409, 429)
"""HTTP statuses, apart from 5xx, after which a call is tried again."""

HOPELESS = {
    401: "the key is wrong or missing",
    402: "the account has no funds left",
    403: "the key is not allowed to do this",
    404: "no such model or address",
}
_LONGEST_WAIT = 31 * 86_400
"""Longest Retry-After in seconds that is believed; a longer one is ignored, as it would end the
audit."""
QUOTED = 2000
"""Maximum number of characters of a server's text in a Trouble. An error shows fewer; the text is
shortened again after keys are removed, since half a key would not be recognised."""


@dataclass(eq=False, repr=False)
class Trouble(Exception):
    """A failed attempt.

    Attributes:
        kind: Name by which troubles are counted ("http 503", "timeout").
        detail: Explanation for an error message.
        then: The next step.
        asked: The server's Retry-After in seconds; None: it sent none.
        billed: Whether the server may have charged for the attempt without counting tokens.
        refused: Whether the server refused the attempt, which most providers do not charge for.
        usage: The tokens that were counted; None: unknown.
        reply: A reply without P(yes) in the mode that was asked for. It is the answer if no attempt
            is left.
        text: The beginning of the text that came in place of a reply.
    """

    kind: str
    detail: str = ""
    _: KW_ONLY
    then: Next = "again"
    asked: float | None = None
    billed: bool = False
    refused: bool = False
    usage: Usage | None = None
    reply: Reply | None = None
    text: str = ""

    def __post_init__(self) -> None:
        self.args = ()  # a copy of the detail, from which keys are removed only later

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else self.kind


@contextmanager
def reading(usage: Usage | None = None, raw: bytes = b"") -> Iterator[None]:
    """Turn any exception in the block that reads a reply into Trouble, except InputError.

    The call is tried again, unless the reply can be read but is no answer (ModelError).

    Args:
        usage: The tokens that the server counted, if known.
        raw: The reply as it came.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # a reply may be malformed in any manner
        trouble = error
        if not isinstance(trouble, Trouble):
            then: Next = "leave" if isinstance(error, ModelError) else "again"
            detail = _fault(error)[:QUOTED]
            trouble = Trouble(MALFORMED, detail, then=then, billed=True, usage=usage)
        trouble.text = trouble.text or text_of_bytes(raw)
        raise trouble from None


def text_of_bytes(raw: bytes) -> str:
    """Return the beginning of a reply that could not be read; keys may still be in it."""
    return raw[:65_536].decode(errors="replace")


def _fault(error: Exception) -> str:
    """Describe the fault of a reply without the names of Python's types."""
    if isinstance(error, KeyError):
        return f"it lacks {one_line(error)}"
    if isinstance(error, TypeError | AttributeError | IndexError):
        return "it has another form than was expected"
    return one_line(error)


def of_status(status: int, headers: Mapping[str, str], detail: str) -> Trouble:
    """Return the trouble with an HTTP status other than success.

    A request that failed on the server (5xx, or 408, a timeout there) may have been computed and
    charged. Providers do not charge for requests that they refuse.

    Args:
        status: The status.
        headers: Headers of the response, with names in lower case.
        detail: The server's explanation.
    """
    if status in HOPELESS:
        return Trouble(f"http {status}", f"{HOPELESS[status]}: {detail}", then="stop", refused=True)
    # 501, not implemented, is a refusal: nothing was computed
    failed = (status >= 500 and status != 501) or status == 408
    if status in RETRIED or failed:
        asked = retry_after(headers.get("retry-after"), datetime.now(UTC))
        return Trouble(f"http {status}", detail, asked=asked, billed=failed, refused=not failed)
    if 300 <= status < 400:
        where = headers.get("location", "nowhere")[:QUOTED]
        detail = f"redirects to {where!r}, which is not followed"
    return Trouble(f"http {status}", detail, then="leave", refused=True)


def retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds in a Retry-After header, a number or an HTTP date (RFC 9110, 10.2.3).

    Args:
        value: The header; None: there is none.
        now: The present time, in UTC.

    Returns:
        Seconds, at least 0; None if there is no header, or it is malformed or above 31 days.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - now).total_seconds()
        except (TypeError, ValueError, OverflowError):
            return None
    return max(0.0, seconds) if seconds <= _LONGEST_WAIT else None  # None for NaN, too
