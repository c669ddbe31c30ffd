"""``avtt verify``: check that a run folder is unchanged, and follows from its rows."""

import json
import math
import re
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import typer

from ..certify.verify import AGREE
from ..certify.verify import verify as verified_intervals
from ..certify.verify_draws import unchecked
from ..errors import JournalError
from ..journal import Journal, as_of, check_head, read_journal
from ..journal.facts import read_facts
from ..journal.files import JOURNAL
from ..results import census
from ..results.advice import resuming
from ..results.result import summarise
from .printing import filled, folded

REPORT = "report.html"
CALLS = ("draw", "source")
"""Kinds of links that stand for one call each."""
HEAD = re.compile(r"\b[0-9a-f]{32}\b")
OLDER = 4
"""Exit code if all is unchanged, but a file is older than the journal's last rows."""


def verify(directory: Path, *, head: str | None = None) -> None:
    """Check that a run folder is unchanged, by its journal.

    The journal's file, chain and rows are checked, every interval is recomputed
    with separate code, and every field of result.json and the report's head
    are compared. This detects damage and careless edits. To detect a journal that
    was rewritten as a whole, note its fingerprint, and give it as --head. Nothing
    is written, and an audit may be running.

    Exit codes: 0 all is right; 2 something is wrong; 4 all is right, but
    result.json or the report is older than the journal, as after a kill.

    Example: avtt verify runs/first --head 0123456789abcdef0123456789abcdef
    """
    sentence, older = check(directory, head)
    typer.echo(folded(sentence))
    for each in older:
        typer.echo(folded(each, "avtt: "), err=True)
    if older:
        raise typer.Exit(OLDER)


def check(out: Path, head: str | None = None) -> tuple[str, list[str]]:
    """Check the file, its chain, its rows and intervals, every field of result.json, and the
    report's head.

    Args:
        out: The run folder.
        head: The journal's head that was noted earlier, 32 hexadecimal digits.

    Returns:
        What was checked, and a sentence for each file that is older than the journal's last rows,
        then one with the command that writes them again.

    Raises:
        JournalError: For anything that is wrong.
    """
    with closing(read_journal(out / JOURNAL)) as journal:
        intervals = verified_intervals(journal)
        if head is not None:
            check_head(journal, head, "the head given")
        ages = [_check_result(journal, out / "result.json"), _check_report(journal, out / REPORT)]
        ages, facts = [*filter(None, ages)], read_facts(journal.facts())
        words: dict[str, object] = {"journal": journal, "facts": facts, "intervals": intervals}
        words |= {"unchecked": unchecked(facts), "ages": ages, "out": out}
        if ages and facts.ended is None:
            words["resuming"] = resuming(facts, out, journal)
        sentence, *older = filled("verified", **words).split("\n")
    return sentence, [*filter(None, older)]


def _check_result(journal: Journal, path: Path) -> str:
    """Compare a result with the journal, as of the head that is written in the result.

    Returns:
        A sentence that the result is older than the journal; "" if it is not.

    Raises:
        JournalError: A field differs. It names the first.
    """
    if not path.is_file():
        return ""
    try:
        stated = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(stated, dict) or "targets" not in stated:
            raise ValueError
    except (ValueError, RecursionError):
        raise JournalError(f"{path}: expected the result of an audit, got something else") from None
    head = stated.get("journal_head", journal.head)
    then = journal if head == journal.head else as_of(journal, str(head))
    if then is None:
        raise JournalError(
            f"{path}: journal_head is none this journal ever had: expected {journal.head}, got "
            f"{head!r}; 'avtt report' writes the result again"
        )
    result = summarise(then)
    computed = json.loads(json.dumps({**result.to_dict(), "journal_head": head}))
    difference = _difference(computed, stated, "")
    problem = f"{path}: {difference}" if difference else ""
    if problem := problem or census.altered(path.parent, dict(result.census)):
        moment = "" if then is journal else ", as of the journal_head that it names"
        raise JournalError(f"{problem}{moment}")
    return "" if then is journal else _age(journal, head, path)


def _check_report(journal: Journal, path: Path) -> str:
    """Look for a head of the journal in a report.

    Returns:
        A sentence that the report is older than the journal; "" if it is not.

    Raises:
        JournalError: It has no head that the journal ever had.
    """
    page = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else journal.head
    if journal.head in page:
        return ""
    carried = set(HEAD.findall(page))
    heads = [link.seal for link in journal.links() if link.seal in carried]
    if not heads:
        raise JournalError(
            f"{path}: was not written from this journal (neither its head, {journal.head}, nor an "
            "earlier one is in it); 'avtt report' writes it again"
        )
    return _age(journal, heads[-1], path)


def _age(journal: Journal, head: str, path: Path) -> str:
    """Return a sentence on how much older than the journal a file is that names this head."""
    calls = [link.kind in CALLS for link in journal.links()]
    rows = 1 + next(k for k, link in enumerate(journal.links()) if link.seal == head)
    ago = f"{len(calls) - rows:,} row{'s' * (len(calls) - rows != 1)} ago"
    of_calls = f"{sum(calls[:rows]):,} of the journal's {sum(calls):,} calls"
    return f"{path}: was written {ago}, with {of_calls}"


def _difference(computed: Any, stated: Any, where: str) -> str:
    """Return the first place where two JSON values differ by more than rounding; "" for none."""
    kinds, place = {type(computed), type(stated)}, where.lstrip(".")
    if kinds == {dict}:
        if other := sorted(computed.keys() ^ stated.keys()):
            wrong = "is missing" if other[0] in computed else "is no field of a result"
            return f"{where}.{other[0]} {wrong}".lstrip(".")
        inside = (_difference(computed[n], stated[n], f"{where}.{n}") for n in stated)
        return next(filter(None, inside), "")
    if kinds == {list} and len(computed) == len(stated):
        inside = (_difference(c, stated[i], f"{where}[{i}]") for i, c in enumerate(computed))
        return next(filter(None, inside), "")
    if kinds == {list}:
        return f"{place}: the journal comes to {len(computed)} rows, the file has {len(stated)}"
    equal = len(kinds) == 1 and computed == stated
    if not equal and kinds <= {int, float}:
        with suppress(OverflowError):  # a whole number that no float holds
            equal = math.isclose(computed, stated, rel_tol=AGREE, abs_tol=AGREE)
    ours, theirs = json.dumps(computed), json.dumps(stated)
    return "" if equal else f"{place}: the journal comes to {ours}, the file says {theirs}"
