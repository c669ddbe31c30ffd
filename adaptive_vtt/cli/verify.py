"""``avtt verify``: whether a run folder is as it was written, and follows from its rows."""

import json
import math
from contextlib import closing
from pathlib import Path
from typing import Any

import typer

from ..certify.verify import AGREE
from ..certify.verify import verify as verified_intervals
from ..certify.verify_draws import unchecked
from ..errors import JournalError
from ..journal import Journal, check_head, read_journal
from ..journal.facts import Facts, read_facts
from ..journal.files import JOURNAL
from ..results.result import summarise
from .options import Head, RunDir


def verify(directory: RunDir, head: Head = None) -> None:
    """Check that a run folder is as it was written, and follows from its journal.

    The journal's file, chain and rows are checked, every interval is recomputed
    with code of its own, and every field of result.json and the report's head
    are compared. This finds damage and careless edits. Whoever rewrites the
    whole journal can make it fit itself: against that, keep the head (in
    result.json and the report) elsewhere, and give it as --head. Nothing is
    written, and an audit may be running.

    Example: avtt verify runs/first --head 0123456789abcdef0123456789abcdef
    """
    typer.echo(check(directory, head))


def check(out: Path, head: str | None = None) -> str:
    """Checks the file, its chain, its rows and intervals, then every field of result.json and
    the report's head; a sentence saying what was checked.

    ``head``: the journal's head as it was kept elsewhere. Raises JournalError for anything
    that is wrong.
    """
    with closing(read_journal(out / JOURNAL)) as journal:
        intervals = verified_intervals(journal)
        if head is not None:
            check_head(journal, head, "the head given")
        _check_result(journal, out / "result.json")
        _check_report(journal, out / "report.html")
        rows, calls = len(journal.links()), len(journal.calls())
        what = f"all {rows} rows, {calls} answers among them, are as they were written"
        facts = read_facts(journal.facts())
        drawn = unchecked(facts) or _drawn(facts)
        promise = "" if facts.certificate is None else facts.certificate.promise
        end = f"{drawn}; head {journal.head}"
    if not intervals:
        return f"{what}; the audit certifies nothing; {end}"
    follow = "the interval follows" if len(intervals) == 1 else "the intervals follow"
    return f"{what}; {follow} from them: {promise}; {end}"


def _drawn(facts: Facts) -> str:
    if facts.replay is None:
        return "every draw follows from the audit's key"
    first = facts.replay.draws
    return f"draws follow from the audit's key, the first {first} from that of model A's audit"


def _check_result(journal: Journal, path: Path) -> None:
    """Raises JournalError naming the first field that is not what the journal comes to."""
    if not path.is_file():
        return
    try:
        stated = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(stated, dict) or "targets" not in stated:
            raise ValueError
    except (ValueError, RecursionError):
        raise JournalError(f"{path}: expected the result of an audit, got something else") from None
    found = json.loads(json.dumps(summarise(journal).to_dict()))
    if "journal_head" in stated:
        remedy = "; 'avtt report' writes the result anew"
        check_head(journal, str(stated["journal_head"]), f"{path}: journal_head", remedy)
    if difference := _difference(found, stated, ""):
        raise JournalError(f"{path}: {difference}")


def _difference(found: Any, stated: Any, where: str) -> str:
    """Where two JSON values differ first, in words; "" where they agree but for rounding."""
    kinds = {type(found), type(stated)}
    if kinds == {dict}:
        if other := sorted(found.keys() ^ stated.keys()):
            wrong = "is missing" if other[0] in found else "is no field of a result"
            return f"{where}.{other[0]} {wrong}".lstrip(".")
        told = (_difference(found[n], stated[n], f"{where}.{n}".lstrip(".")) for n in stated)
        return next(filter(None, told), "")
    if kinds == {list} and len(found) == len(stated):
        told = (_difference(f, stated[i], f"{where}[{i}]") for i, f in enumerate(found))
        return next(filter(None, told), "")
    close = kinds <= {int, float} and math.isclose(found, stated, rel_tol=AGREE, abs_tol=AGREE)
    if close or (len(kinds) == 1 and found == stated):
        return ""
    if kinds == {list}:
        return f"{where}: the journal comes to {len(found)} rows, the file has {len(stated)}"
    ours, theirs = json.dumps(found), json.dumps(stated)
    return f"{where}: the journal comes to {ours}, the file says {theirs}"


def _check_report(journal: Journal, path: Path) -> None:
    """Raises JournalError where the page does not carry the journal's head."""
    if path.is_file() and journal.head not in path.read_text(encoding="utf-8", errors="replace"):
        raise JournalError(
            f"{path}: was not written from the journal as it is now (its head, {journal.head}, "
            "is not in it); 'avtt report' writes it anew"
        )
