"""``avtt slices``: groups in which failures concentrate, certified ones and guesses."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import typer

from ..audit.slices import Evidence, Slice, explore
from ..audit.slices.looking import ASKED
from ..certify.targets import size
from ..certify.tracks import unseen
from ..config.going_on import space_of
from ..errors import InputError, JournalError
from ..results.run import Run
from ..space import QuestionSpace
from ..types import JsonObject
from ..utils.figures import outward
from .options import names
from .printing import print_json

OTHERWISE = (
    "look from Python with adaptive_vtt.audit.slices.explore(audit.journal, audit.space, most=5)"
)
"""Advice for a journal that keeps no spec."""
EXAMPLES = 3
"""Samples that are named of a slice, at most."""


def slices(
    directory: Path,
    *,
    most: int = 5,
    by: str | None = None,
    run_code: bool = False,
    json_: bool = False,
) -> None:
    """Find groups of questions in which failures concentrate.

    Slices that the audit noticed (--set certify.discover=N of 'avtt audit') are
    certified by the draws after. What is proposed here is chosen because of the
    answers that support it, so no interval covers it: look, then certify it.
    Nothing that the run folder names is run, unless --run-code says so.

    Example: avtt slices runs/first

    Args:
        most (COUNT): Slices to propose, at most.
        by (NAMES): What proposes them, separated by commas: metadata, cells, clusters, words.
            Default: as the audit does, metadata,cells.
    """
    if most < 1:
        raise InputError(f"--most: expected at least 1, got {most}")
    where = str(directory)
    with Run.opened(directory) as run:
        certificate, journal = run.certificate, run.journal
        if certificate is not None and certificate.versus is not None:
            raise JournalError(f"{where}: expected an audit of one model, got a comparison of two")
        space, spec, _ = space_of(journal, where, OTHERWISE, run_code=run_code)
        proposals = explore(journal, space, most=most, by=names(by) or spec.certify.discover_by)
        aside = 0.0 if certificate is None else certificate.set_aside
        certified = _certified(run) if aside else []
        evidence = Evidence.of(space, run.draws, run.calls)
        proposed = [_proposed(evidence, space, each) for each in proposals]
    count = len(certified) + len(proposed)
    command = f"avtt audit SPEC.toml --set certify.discover={count} --out DIR"
    if aside:
        command = f"avtt resume {shlex.quote(where)} --set certify.discover={count}"
    record = {
        "certified": certified,
        "proposed": proposed,
        "set_aside": aside,
        "together": certificate is not None and certificate.guarantee == "all",
        "next": command if proposed else None,
    }
    if json_:
        print_json(record)
    else:
        typer.echo("\n".join((*_certified_lines(record), *_proposed_lines(record))))


def _certified(run: Run) -> list[JsonObject]:
    """Return the slices that the audit certified; ``unseen`` is the rate to quote."""
    certificate = run.certificate
    assert certificate is not None
    rows = run.statuses[certificate.registered :]
    rates = unseen(certificate, run.calls, [(row.lower, row.upper) for row in rows])
    keys = ("estimate", "lower", "upper", "certified", "questions")
    return [
        {
            "slice": s.name,
            "how": "asked for" if s.found_by == (ASKED,) else "found",
            "found_at": s.since,
            "size": s.size,
            **{key: getattr(row, key) for key in keys},
            "unseen": None if rate is None else asdict(rate),
        }
        for s, row, rate in zip(certificate.slices, rows, rates, strict=True)
    ]


def quoted(run: Run) -> list[str]:
    """Return a line per slice that an audit found: the rate to quote of it."""
    rows = _certified(run) if run.certificate and run.certificate.slices else []
    return [f"slice {row['slice']}: {_of_unseen(row)}" for row in rows if row["unseen"]]


def _of_unseen(row: JsonObject) -> str:
    """Return the rate to quote: the failures by which the slice was found are not in it."""
    rate = row["unseen"]
    low, high = outward(rate["lower"], rate["upper"])
    unseen = f"{rate['questions']:,} questions unseen when it was found"
    return f"rate {low:.1%} to {high:.1%} of the {unseen}"


def _proposed(evidence: Evidence, space: QuestionSpace, proposal: Slice) -> JsonObject:
    inside = evidence.inside(space, [proposal.target])[0] & (evidence.loss >= 0.5)
    samples = [*dict.fromkeys(evidence.sample[inside].tolist())]
    names = ("images", "rate", "lift", "least_lift", "tried", "where")
    return {
        "slice": proposal.words,
        "found_by": [*proposal.proposers],
        **{name: getattr(proposal, name) for name in names},
        "rate_of_all": proposal.base,
        "size": size(space, proposal.target),
        "examples": [space.dataset.sample_id(k) for k in samples[:EXAMPLES]],
    }


def _certified_lines(record: JsonObject) -> Iterator[str]:
    for row in record["certified"]:
        low, high = outward(row["lower"], row["upper"])
        state = "certified" if row["certified"] else "not as narrow as asked yet"
        yield row["slice"]
        if row["unseen"]:
            yield f"  {_of_unseen(row)}"
        yield f"  whole slice {low:.1%} to {high:.1%}, {state}"
        asked = f"{row['questions']} of {row['size']} questions asked"
        yield f"  {row['how']} at call {row['found_at']}, {asked}"
    if record["certified"]:
        others = "with all others of the audit" if record["together"] else "each by itself"
        yield f"the intervals above hold, {others}, at every moment\n"


def _proposed_lines(record: JsonObject) -> Iterator[str]:
    """Yield the lines of the guesses, and of what certifies them."""
    proposed = record["proposed"]
    if not proposed:
        more = "more " if record["certified"] else ""
        yield f"no {more}group fails so much more often that it cannot be chance"
        yield "in the answers so far; more calls may show one"
        return
    for row in proposed:
        yield row["slice"]
        of_all = f"{row['lift']:.1f} times as often as all ({row['rate_of_all']:.1%})"
        yield f"  fails {row['rate']:.1%}, {of_all}; at least {row['least_lift']:.1f} times"
        counts = f"{row['images']} images asked about; {row['size']} questions in all"
        yield f"  {counts}; by {', '.join(row['found_by'])}"
        if row["examples"]:
            yield f"  such as {', '.join(row['examples'])}"
    tried = max(row["tried"] for row in proposed)
    yield f"\nguesses: chosen among {tried} groups by these very answers; none is certified"
    if record["set_aside"]:
        yield f"certify them with draws to come: {record['next']}"
        return
    yield "this audit set no alpha aside for slices, so it can certify none; a new one can:"
    yield f"  {record['next']}"
    if filters := {row["slice"]: row["where"] for row in proposed if row["where"]}:
        yield "or one with them among its targets, in its SPEC.toml:\n  [certify.where]"
    for name, where in filters.items():  # JSON is TOML of texts, numbers and lists of them
        fields = (f"{json.dumps(k)} = {json.dumps(v, default=str)}" for k, v in where.items())
        yield f"  {json.dumps(name)} = {{{', '.join(fields)}}}"
