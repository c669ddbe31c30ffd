"""The errors of this package: one base, one sentence each.

A message names what was expected, what was given and where. The command line prints it
on one line and exits with 2.
"""

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches

__all__ = ["AvttError", "InputError", "JournalError", "ModelError", "OrderError"]


class AvttError(Exception):
    """Base of every error raised on purpose."""

    exit_code = 2


class InputError(AvttError, ValueError):
    """Unusable input of the user: a file, a label, an option."""


class ModelError(AvttError):
    """The model under test raised, or answered something that is no answer."""


class JournalError(AvttError):
    """The journal cannot be read, written, or does not belong to this audit."""


class OrderError(AvttError):
    """``ask`` and ``tell`` were called in an order that makes no sense."""


def unexpected(where: str, expected: str, got: object, remedy: str = "") -> InputError:
    """Return the error for input that is other than expected: "where: expected ..., got ...".

    Args:
        where: Names the file, row, sample or option; "" for none.
        expected: What can be used, as a noun.
        got: What came instead.
        remedy: What to do about it, as a clause.
    """
    place = f"{where}: " if where else ""
    return InputError(f"{place}expected {expected}, got {got}{remedy and f'; {remedy}'}")


FEW, MANY = 6, 12
"""Names that are listed where one is unknown, at most: with a nearest one, and without."""


def unknown(
    kind: str, name: str, choices: Iterable[str], where: str = "", every: str = ""
) -> InputError:
    """Return the error for a name that is not one of ``choices``: the nearest one, then some.

    ``every``: the command that shows all, for where they are too many to list.
    """
    known = sorted(set(choices))
    near = get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    place = f"{where}: " if where else ""
    hint = f"; did you mean {near[0]!r}? Expected" if near else ": expected"
    shown = known if len(known) <= MANY else known[: FEW if near else MANY]
    left = len(known) - len(shown)
    more = f" and {left} more" + (f" ({every!r} shows all)" if every else "") if left else ""
    return InputError(f"{place}unknown {kind} {name!r}{hint} one of {', '.join(shown)}{more}")


def check_known(
    kind: str, name: str, choices: Collection[str], where: str = "", every: str = ""
) -> None:
    """Raise ``unknown`` for a name that is not one of ``choices``."""
    if name not in choices:
        raise unknown(kind, name, choices, where, every)


def listed(names: Iterable[str], most: int = 6) -> str:
    """Return names in quotes, of many the first ones alone."""
    return some([repr(str(name)) for name in names], most)


def some(parts: Sequence[str], most: int) -> str:
    """Return parts of a list in words, of many the first ones alone."""
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return ", ".join(parts[:most]) + more


def one_line(error: BaseException) -> str:
    """Return an exception's message on one line, for sentences that quote it."""
    return " ".join(str(error).split()) or type(error).__name__
