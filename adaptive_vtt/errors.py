"""Errors of this package, with one base class, and helpers that build their messages.

A message is one sentence: what was expected, what came instead, where, and the remedy. The command
line prints it and exits with 2.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from textwrap import shorten

__all__ = ["AvttError", "InputError", "JournalError", "ModelError", "OrderError"]


class AvttError(Exception):
    """Base of every error raised on purpose.

    Attributes:
        part: What kind of part failed, such as "oracle"; "" if none did.
    """

    exit_code = 2
    part = ""


class InputError(AvttError, ValueError):
    """Raised for unusable input of the user: a file, a label, an option."""


class ModelError(AvttError):
    """Raised if the model under test raised an exception or returned no valid answer."""


class JournalError(AvttError):
    """Raised if the journal cannot be read or written, or belongs to another audit."""


class OrderError(AvttError):
    """Raised if ``ask`` and ``tell`` were called in the wrong order."""


def unexpected(where: str, expected: str, got: object, remedy: str = "") -> InputError:
    """Return the error "where: expected ..., got ...; remedy".

    Args:
        where: The file, row, sample or option; "" for none.
        expected: What can be used, as a noun.
        got: What came instead.
        remedy: What to do about it, as a clause; "" for none.
    """
    place, advice = f"{where}: " if where else "", f"; {remedy}" if remedy else ""
    return InputError(f"{place}expected {expected}, got {got}{advice}")


FEW, MANY = 6, 12
"""Most known names that a message lists: if one of them is similar, and if none is."""


@contextmanager
def advising(advice: str) -> Iterator[None]:
    """Append how to continue to errors about a user's code or model in a block; "" adds nothing."""
    try:
        yield
    except (InputError, ModelError) as error:
        error.args = (f"{error}; {advice}" if advice else str(error),)
        raise


def unknown(
    kind: str, name: str, choices: Iterable[str], where: str = "", every: str = ""
) -> InputError:
    """Return the error for an unknown name, with the most similar known one and some others.

    Args:
        kind: What the name stands for, such as "relation".
        name: The unknown name.
        choices: The known names.
        where: The file or option that it came from; "" for none.
        every: Command that lists all known names, for kinds that have too many; "" for none.
    """
    known = sorted(set(choices))
    near = get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    place = f"{where}: " if where else ""
    hint = f"; did you mean {near[0]!r}? Expected" if near else ": expected"
    shown = known if len(known) <= MANY else known[: FEW if near else MANY]
    left = len(known) - len(shown)
    more = f" and {left} more" + (f" ({every!r} shows all)" if every else "") if left else ""
    return InputError(f"{place}unknown {kind} {name!r}{hint} one of {', '.join(shown)}{more}")


def check_known(kind: str, name: str, choices: Collection[str], where: str = "") -> None:
    """Raise InputError (``unknown``) for a name that is not one of ``choices``."""
    if name not in choices:
        raise unknown(kind, name, choices, where)


def listed(names: Iterable[str], most: int = 6) -> str:
    """Return names in quotes, separated by commas: at most the first ``most``."""
    return some([repr(str(name)) for name in names], most)


def some(parts: Sequence[str], most: int) -> str:
    """Return texts separated by commas: at most the first ``most``, then "and N more"."""
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return ", ".join(parts[:most]) + more


def brief(value: object) -> str:
    """Return the beginning of an object's ``repr`` on one line, for messages."""
    return shorten(repr(value), 40, placeholder=" ...")


def one_line(error: BaseException) -> str:
    """Return an exception's message on one line, for sentences that quote it."""
    return " ".join(str(error).split()) or type(error).__name__
