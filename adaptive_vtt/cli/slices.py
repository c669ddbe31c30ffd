"""``avtt slices``: groups in which failures concentrate, certified ones and guesses."""

from dataclasses import asdict
from functools import partial
from json import dumps
from pathlib import Path

import typer

from ..audit.slices import Evidence, Slice, explore
from ..audit.slices.looking import ASKED
from ..certify.targets import size
from ..certify.tracks import unseen
from ..config.resuming import space_of
from ..engine.options import DISCOVER_BY
from ..errors import InputError, JournalError
from ..results.advice import resume_command
from ..results.run import Run
from ..space import QuestionSpace
from ..types import JsonObject
from ..utils.figures import percent, span
from .options import names
from .printing import filled, print_json

OTHERWISE = "its data were in memory: result.failures() in Python has the failures, to group"
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

    With --set certify.discover=N, 'avtt audit' searches for slices and certifies
    them by later draws. Slices that are proposed here are chosen by the answers
    so far, so no interval covers them: look at them, then certify them. Code that
    the run folder names is run with --run-code alone.

    Example: avtt slices runs/first

    Args:
        most (COUNT): Most slices to propose.
        by (NAMES): What proposes them, separated by commas: metadata, cells, clusters or words.
            Default: the audit's, else metadata,cells.
    """
    if most < 1:
        raise InputError(f"--most: expected at least 1, got {most}")
    where = str(directory)
    with Run.opened(directory) as run:
        certificate, journal = run.certificate, run.journal
        if certificate is not None and certificate.versus is not None:
            raise JournalError(f"{where}: expected an audit of one model, got a comparison of two")
        space = space_of(journal, where, OTHERWISE, run_code=run_code)
        own = (run.facts.spec or {}).get("certify", run.facts.call or {}).get("discover_by")
        proposals = explore(journal, space, most=most, by=names(by) or own or DISCOVER_BY)
        aside = 0.0 if certificate is None else certificate.set_aside
        certified = _certified(run) if aside else []
        evidence = Evidence.of(space, run.draws, run.calls)
        proposed = [_proposed(evidence, space, each) for each in proposals]
    count = len(certified) + len(proposed)
    command = f"avtt audit SPEC.toml --set certify.discover={count} --out DIR"
    if aside:
        command = f"{resume_command(run.facts, where)} --set certify.discover={count}"
    elif run.facts.spec is None:
        command = f"adaptive_vtt.audit(..., discover={count}, out=ANOTHER)"
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
        words = {"span": span, "percent": percent, "json": partial(dumps, default=str)}
        typer.echo(filled("slices", **record, of_unseen=of_unseen, **words))


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
            "how": "asked for" if s.proposers == (ASKED,) else "discovered",
            "since": s.since,
            "size": s.size,
            **{key: getattr(row, key) for key in keys},
            "unseen": None if rate is None else asdict(rate),
        }
        for s, row, rate in zip(certificate.slices, rows, rates, strict=True)
    ]


def quoted(run: Run) -> list[str]:
    """Return a line per slice that an audit discovered: the rate to quote of it."""
    rows = _certified(run) if run.certificate and run.certificate.slices else []
    return [f"slice {row['slice']}: {of_unseen(**row['unseen'])}" for row in rows if row["unseen"]]


def of_unseen(lower: float, upper: float, questions: int, **_: object) -> str:
    """Return the rate to quote, without the failures by which the slice was noticed."""
    return f"rate {span(lower, upper)} on the {questions:,} questions unseen when it was noticed"


def _proposed(evidence: Evidence, space: QuestionSpace, proposal: Slice) -> JsonObject:
    inside = evidence.inside(space, [proposal.target])[0] & (evidence.loss >= 0.5)
    samples = [*dict.fromkeys(evidence.sample[inside].tolist())]
    names = ("images", "rate", "lift", "least_lift", "tried", "where")
    return {
        "slice": proposal.words,
        "proposers": [*proposal.proposers],
        **{name: getattr(proposal, name) for name in names},
        "rate_of_all": proposal.base,
        "size": size(space, proposal.target),
        "examples": [space.dataset.sample_id(k) for k in samples[:EXAMPLES]],
    }
