"""``avtt slices``: groups in which failures concentrate, certified ones and guesses."""

import json
import shlex
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from ..audit.slices import Evidence, Found, explore
from ..audit.slices.looking import ASKED
from ..certify.targets import size
from ..certify.tracks import unseen
from ..config.going_on import space_of
from ..errors import JournalError
from ..journal import Journal, read_journal
from ..journal.facts import CertificateFacts, read_facts
from ..journal.files import JOURNAL
from ..results.result import summarise
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
    with closing(read_journal(directory / JOURNAL)) as journal:
        told = _told(journal, directory, most, names(by), run_code)
    if json_:
        typer.echo(json.dumps(told, indent=1, allow_nan=False))
    else:
        typer.echo("\n".join(_lines(told)))


def _told(
    journal: "Journal", directory: Path, most: int, by: list[str] | None, run_code: bool
) -> JsonObject:
    where, facts = str(directory), read_facts(journal.facts())
    certificate = facts.certificate
    if certificate is not None and certificate.versus is not None:
        raise JournalError(f"{where}: expected an audit of one model, got a comparison of two")
    space, spec, _ = space_of(journal, where, OTHERWISE, run_code=run_code)
    found = explore(journal, space, most=most, by=by or spec.certify.discover_by)
    aside = 0.0 if certificate is None else certificate.set_aside
    certified = _certified(journal, certificate) if certificate is not None and aside else []
    evidence = Evidence.of(space, journal.draws(proposals=False), journal.calls())
    return {
        "certified": certified,
        "proposed": [_proposed(evidence, space, one) for one in found],
        "set_aside": aside,
        "together": certificate is not None and certificate.guarantee == "all",
        "next": _next(directory, aside, len(certified) + len(found)) if found else None,
    }


def _certified(journal: "Journal", certificate: "CertificateFacts") -> list[JsonObject]:
    table = summarise(journal).targets
    rows = table[table["kind"] == "slice"].to_dict("records")
    rates = unseen(certificate, journal.calls(), [(r["lower"], r["upper"]) for r in rows])
    keys = ("estimate", "lower", "upper", "certified", "questions")
    return [
        {
            "slice": s.name,
            "how": "asked for" if s.found_by == (ASKED,) else "found",
            "found_at": s.since,
            "size": s.size,
        }
        | {k: row[k] for k in keys}
        | {"unseen": None if rate is None else asdict(rate)}
        for s, row, rate in zip(certificate.slices, rows, rates, strict=True)
    ]


def quoted(journal: "Journal") -> list[str]:
    """A line per slice that an audit found: the rate to quote of it."""
    certificate = read_facts(journal.facts()).certificate
    rows = _certified(journal, certificate) if certificate and certificate.slices else []
    return [
        f"slice {row['slice']}:{line[1:]}" for row in rows for line in _of_unseen(row["unseen"])
    ]


def _proposed(evidence: "Evidence", space: Any, found: "Found") -> JsonObject:
    inside = evidence.inside(space, [found.target])[0] & (evidence.loss >= 0.5)
    samples = dict.fromkeys(evidence.sample[inside].tolist())
    return {
        "slice": found.words,
        "found_by": [*found.found_by],
        "images": found.images,
        "rate": found.rate,
        "rate_of_all": found.base,
        "lift": found.lift,
        "least_lift": found.least_lift,
        "tried": found.tried,
        "size": size(space, found.target),
        "examples": [space.dataset.sample_id(k) for k in list(samples)[:EXAMPLES]],
        "where": found.where,
    }


def _next(directory: Path, aside: float, count: int) -> str:
    if aside:
        return f"avtt resume {shlex.quote(str(directory))} --set certify.discover={count}"
    return f"avtt audit SPEC.toml --set certify.discover={count} --out DIR"


def _lines(told: JsonObject) -> list[str]:
    lines = []
    for row in told["certified"]:
        low, high = outward(row["lower"], row["upper"])
        state = "certified" if row["certified"] else "not as narrow as asked yet"
        lines += [
            row["slice"],
            *_of_unseen(row["unseen"]),
            f"  whole slice {low:.1%} to {high:.1%}, {state}",
            f"  {row['how']} at call {row['found_at']}, {row['questions']} of {row['size']} "
            "questions asked",
        ]
    if told["certified"]:
        others = "with all others of the audit" if told["together"] else "each by itself"
        lines += [f"the intervals above hold, {others}, at every moment", ""]
    for row in told["proposed"]:
        lines += _proposal(row)
    if not told["proposed"]:
        more = "more " if told["certified"] else ""
        return [
            *lines,
            f"no {more}group fails so much more often that it cannot be chance",
            "in the answers so far; more calls tell more",
        ]
    return [*lines, *_caution(told)]


def _of_unseen(rate: JsonObject | None) -> list[str]:
    """The rate to quote: the failures by which the slice was found are not in it."""
    if rate is None:
        return []
    low, high = outward(rate["lower"], rate["upper"])
    return [
        f"  rate {low:.1%} to {high:.1%} of the {rate['questions']:,} questions unseen when it was "
        "found"
    ]


def _proposal(row: JsonObject) -> list[str]:
    lines = [
        row["slice"],
        f"  fails {row['rate']:.1%}, {row['lift']:.1f} times as often as all "
        f"({row['rate_of_all']:.1%}); at least {row['least_lift']:.1f} times",
        f"  {row['images']} images asked about; {row['size']} questions in all; "
        f"by {', '.join(row['found_by'])}",
    ]
    if row["examples"]:
        lines.append(f"  such as {', '.join(row['examples'])}")
    return lines


def _caution(told: JsonObject) -> list[str]:
    tried = max(row["tried"] for row in told["proposed"])
    lines = ["", f"guesses: chosen among {tried} groups by these very answers; none is certified"]
    if told["set_aside"]:
        return [*lines, f"certify them with draws to come: {told['next']}"]
    return [
        *lines,
        "this audit set no alpha aside for slices, so it can certify none; a new one can:",
        f"  {told['next']}",
        *_filters(told["proposed"]),
    ]


def _filters(rows: Sequence[JsonObject]) -> list[str]:
    """The slices as targets of a SPEC.toml."""
    kept = [row for row in rows if row["where"]]
    if not kept:
        return []
    lines = ["or one with them among its targets, in its SPEC.toml:", "  [certify.where]"]
    for row in kept:
        fields = ", ".join(f"{_toml(k)} = {_toml(v)}" for k, v in row["where"].items())
        lines.append(f"  {_toml(row['slice'])} = {{{fields}}}")
    return lines


def _toml(value: Any) -> str:
    """A text, a number or a list of them: JSON is TOML there."""
    return json.dumps(value, default=str)
