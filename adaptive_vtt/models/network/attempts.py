"""The end of an attempt at a call: a reply, or trouble that says what to do next."""

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
        usage: The tokens that the server counted; None: none, so it costs the most it can.
        text: The raw reply.
        wanted: Whether it has P(yes) in the mode that was asked for; None: not known, as it was
            refused, or cut.
        served: The model, and the system behind it, that the reply names.
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
"""Kinds of trouble in which something came that is no reply, such as a gateway's page."""
REPLIED = (MALFORMED, TOO_LONG)
"""Kinds of trouble in which the server did reply, so that it is neither down nor unreachable."""
RETRIED = (408, 409, 429)
NOT_IMPLEMENTED = 501
"""A refusal: nothing was computed."""
HOPELESS = {
    401: "the key is wrong or missing",
    402: "the account has no funds left",
    403: "the key is not allowed to do this",
    404: "no such model or address",
}
_LONGEST_WAIT = 31 * 86_400
"""Longest Retry-After in seconds that is believed; more is a mistake, or a trick to end the
audit."""
QUOTED = 2000
"""Most characters of a server's own words that a Trouble keeps: many more than are shown. Keys are
taken out before the text is cut to what is shown, since half a key would stay."""


@dataclass(eq=False, repr=False)
class Trouble(Exception):
    """A failed attempt.

    Attributes:
        kind: Counted and reported ("http 503", "timeout").
        detail: For an error's sentence.
        then: What to do next.
        asked: The Retry-After in seconds.
        billed: Whether the server may have charged for the attempt without counting tokens.
        refused: Whether its status is one that providers do not charge for.
        usage: The tokens that were counted.
        reply: A reply that lacks what was asked for; it is taken if no attempt is left.
        text: What came in place of a reply, as far as it is kept.
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
        self.args = ()  # they would keep a detail that still has a key in it

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else self.kind


@contextmanager
def reading(usage: Usage | None = None, raw: bytes = b"") -> Iterator[None]:
    """Raise Trouble for whatever goes wrong while a reply is read, which never ends an audit.

    A reply that can be read but is no answer to the prompt (ModelError) is not asked for again.

    Args:
        usage: The tokens that the server counted, if known by then.
        raw: The reply as it came.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # a reply may be wrong in ways nobody thought of
        trouble = error
        if not isinstance(trouble, Trouble):
            then: Next = "leave" if isinstance(error, ModelError) else "again"
            detail = _in_words(error)[:QUOTED]
            trouble = Trouble(MALFORMED, detail, then=then, billed=True, usage=usage)
        trouble.text = trouble.text or text_of_bytes(raw)
        raise trouble from None


_READ = 65_536


def text_of_bytes(raw: bytes) -> str:
    """Return the beginning of a reply that could not be read; keys may still be in it."""
    return raw[:_READ].decode(errors="replace")


def _in_words(error: Exception) -> str:
    """Return the fault of a reply in words, without the names of Python's types."""
    if isinstance(error, KeyError):
        return f"it lacks {one_line(error)}"
    if isinstance(error, TypeError | AttributeError | IndexError):
        return "it has another form than was expected"
    return one_line(error)


def of_status(status: int, headers: Mapping[str, str], detail: str) -> Trouble:
    """Return the trouble with an HTTP status that is no success.

    What failed on the server's side (5xx, and 408, a timeout there) may have been computed, and
    charged for; requests that it refuses, providers do not charge for.
    """
    if status in HOPELESS:
        return Trouble(f"http {status}", f"{HOPELESS[status]}: {detail}", then="stop", refused=True)
    failed = (status >= 500 and status != NOT_IMPLEMENTED) or status == 408
    if status in RETRIED or failed:
        asked = retry_after(headers.get("retry-after"), datetime.now(UTC))
        return Trouble(f"http {status}", detail, asked=asked, billed=failed, refused=not failed)
    if 300 <= status < 400:
        where = headers.get("location", "nowhere")[:QUOTED]
        detail = f"redirects to {where!r}, which is not followed"
    return Trouble(f"http {status}", detail, then="leave", refused=True)


def retry_after(value: str | None, now: datetime) -> float | None:
    """Return seconds from a Retry-After header: a number, or an HTTP date (RFC 9110, 10.2.3).

    None if there is none, or it cannot be read, or is longer than any wait that is meant.
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
    return max(0.0, seconds) if seconds <= _LONGEST_WAIT else None  # NaN is not
