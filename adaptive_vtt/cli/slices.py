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

OTHERWISE = (
    "look from Python with adaptive_vtt.audit.slices.explore(audit.journal, audit.space, most=5)"
)
"""What to do about a journal that keeps no spec."""
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

    Slices that the audit found itself (--set certify.discover=N of 'avtt audit')
    are certified by the draws after. What is proposed here is chosen because of
    the answers that speak for it, so no interval covers it: look at it, then
    certify it.
    Nothing that the run folder names is run, unless --run-code says so.

    Example: avtt slices runs/first

    Args:
        most (COUNT): Slices to propose, at most.
        by (NAMES): What proposes them, separated by commas: metadata, cells, clusters, words.
            Default: as the audit does, metadata,cells.
    """
    if most < 1:
        raise InputError(f"--most: expected at least 1, got {most}")
    with Run.opened(directory) as run:
        shown = _shown(run, directory, most, names(by), run_code)
    typer.echo(json.dumps(shown, indent=1, allow_nan=False) if json_ else "\n".join(_lines(shown)))


def _shown(
    run: Run, directory: Path, most: int, by: list[str] | None, run_code: bool
) -> JsonObject:
    """Return the slices that the audit certified, and those that its answers propose."""
    where, certificate, journal = str(directory), run.certificate, run.journal
    if certificate is not None and certificate.versus is not None:
        raise JournalError(f"{where}: expected an audit of one model, got a comparison of two")
    space, spec, _ = space_of(journal, where, OTHERWISE, run_code=run_code)
    proposals = explore(journal, space, most=most, by=by or spec.certify.discover_by)
    aside = 0.0 if certificate is None else certificate.set_aside
    certified = _certified(run) if aside else []
    evidence = Evidence.of(space, run.draws, run.calls)
    count = len(certified) + len(proposals)
    command = f"avtt audit SPEC.toml --set certify.discover={count} --out DIR"
    if aside:
        command = f"avtt resume {shlex.quote(where)} --set certify.discover={count}"
    return {
        "certified": certified,
        "proposed": [_proposed(evidence, space, each) for each in proposals],
        "set_aside": aside,
        "together": certificate is not None and certificate.guarantee == "all",
        "next": command if proposals else None,
    }


def _certified(run: Run) -> list[JsonObject]:
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
    return [
        f"slice {row['slice']}:{line[1:]}" for row in rows for line in _of_unseen(row["unseen"])
    ]


def _proposed(evidence: Evidence, space: QuestionSpace, slice_: Slice) -> JsonObject:
    inside = evidence.inside(space, [slice_.target])[0] & (evidence.loss >= 0.5)
    samples = dict.fromkeys(evidence.sample[inside].tolist())
    names = ("images", "rate", "lift", "least_lift", "tried", "where")
    return {
        "slice": slice_.words,
        "found_by": [*slice_.proposers],
        **{name: getattr(slice_, name) for name in names},
        "rate_of_all": slice_.base,
        "size": size(space, slice_.target),
        "examples": [space.dataset.sample_id(k) for k in list(samples)[:EXAMPLES]],
    }


def _of_unseen(rate: JsonObject | None) -> list[str]:
    """Return the rate to quote: the failures by which the slice was found are not in it."""
    if rate is None:
        return []
    low, high = outward(rate["lower"], rate["upper"])
    unseen = f"{rate['questions']:,} questions unseen when it was found"
    return [f"  rate {low:.1%} to {high:.1%} of the {unseen}"]


def _lines(shown: JsonObject) -> Iterator[str]:
    """Yield what the terminal shows: certified slices, then guesses and what certifies them."""
    certified, proposed = shown["certified"], shown["proposed"]
    for row in certified:
        low, high = outward(row["lower"], row["upper"])
        state = "certified" if row["certified"] else "not as narrow as asked yet"
        yield from (row["slice"], *_of_unseen(row["unseen"]))
        yield f"  whole slice {low:.1%} to {high:.1%}, {state}"
        asked = f"{row['questions']} of {row['size']} questions asked"
        yield f"  {row['how']} at call {row['found_at']}, {asked}"
    if certified:
        others = "with all others of the audit" if shown["together"] else "each by itself"
        yield f"the intervals above hold, {others}, at every moment\n"
    if not proposed:
        more = "more " if certified else ""
        yield f"no {more}group fails so much more often that it cannot be chance"
        yield "in the answers so far; more calls tell more"
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
    if shown["set_aside"]:
        yield f"certify them with draws to come: {shown['next']}"
        return
    yield "this audit set no alpha aside for slices, so it can certify none; a new one can:"
    yield f"  {shown['next']}"
    if filters := {row["slice"]: row["where"] for row in proposed if row["where"]}:
        yield "or one with them among its targets, in its SPEC.toml:\n  [certify.where]"
    for name, where in filters.items():  # JSON is TOML of texts, numbers and lists of them
        fields = ", ".join(
            f"{json.dumps(k)} = {json.dumps(v, default=str)}" for k, v in where.items()
        )
        yield f"  {json.dumps(name)} = {{{fields}}}"
