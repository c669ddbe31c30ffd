"""What may be done after an audit, as commands to copy."""

import math
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from ..errors import InputError, ModelError
from ..journal import Journal, answered
from ..journal.facts import Facts, read_facts
from ..results import Result

ROOM = 1.25
"""Factor on the calls that are forecast: about half of all audits take more than a forecast."""
NEARLY = 2
"""Factor on the half-width wanted, above which nobody would settle for what was reached."""
LEAST_LOSS = 0.5
"""What ``avtt export`` takes for a failure, where nothing else is said."""
WIDE = 80
Step = tuple[str, str]
"""A command, and its purpose."""


def tell(steps: list[Step]) -> None:
    """Prints what may be done next, a command each."""
    typer.echo("next:")
    for command, purpose in steps:
        line = f"  {command}    # {purpose}"
        typer.echo(line if purpose and len(line) <= WIDE else f"  {command}")


@contextmanager
def naming_the_way_on(journal: Journal, out: Path) -> Iterator[None]:
    """Errors of what is done inside, to the audit in ``out``, also say how it goes on."""
    try:
        yield
    except (InputError, ModelError) as error:
        way = f"'avtt resume {shlex.quote(str(out))}' goes on once that is mended"
        if not answered(journal):
            way = "nothing came back yet: mend that, and the same command begins again"
        error.args = (f"{error}; {way}",)
        raise


def next_steps(out: Path, journal: Journal, result: Result) -> list[Step]:
    """Commands that go on from the audit in ``out``, each with its purpose, likeliest first."""
    folder = shlex.quote(str(out))
    found: list[Step] = []
    facts = read_facts(journal.facts())
    if "emptied" in result.targets and bool(result.targets["emptied"].any()):
        again = shlex.quote(f"{out}-again")
        found.append((f"avtt audit SPEC.toml --out {again}", "once the model stays as it is"))
    more = 0 if found else _more(facts, result)
    if more and (limits := _raised(facts, journal, result, more)):
        what = "goes on, to certify the rest" if facts.certificate else "goes on"
        found.append((f"avtt resume {folder} {limits}", what))
        found += _settling(folder, facts, result)
    answers = (answer for call in journal.calls() for answer in call.answers)
    if any((a.loss or 0) >= LEAST_LOSS and a.unanswered is None for a in answers):
        failures = shlex.quote(str(out / "failures"))
        found.append((f"avtt export {folder} --failures {failures}", "what went wrong, as files"))
    return [*found, (f"avtt verify {folder}", "checks every figure")]


def _settling(folder: str, facts: Facts, result: Result) -> list[Step]:
    """The command that ends an audit with the intervals it has, if they are nearly as wanted."""
    wanted = None if facts.certificate is None else facts.certificate.half_width
    reached = float(result.targets["half_width"].max())
    if wanted is None or reached > NEARLY * wanted:
        return []
    return [(f"avtt resume {folder} --half-width {rounded_up(reached)}", "or settles for this")]


def _more(facts: Facts, result: Result) -> int:
    """About how many more calls the open targets take, at most all there are; an audit that
    explores may double what it asked. 0: nothing is left to do."""
    left = facts.all_calls - result.calls
    if facts.certificate is None:
        return min(result.calls, left)
    decided = result.targets.get("decided")
    open_ = ~result.targets["certified"].astype(bool)
    if decided is not None:
        open_ |= decided.isna()
    if not open_.any():
        return 0
    widest = int(result.targets.loc[open_, "more_calls"].max())
    return max(0, min(math.ceil(ROOM * max(widest, result.calls / 10)), left))


def _raised(facts: Facts, journal: Journal, result: Result, more: int) -> str:
    """The options that let an audit ask ``more`` calls: of the limits that it has, those that
    would end it before."""
    spec: Mapping[str, Any] = facts.spec or {}
    part = 1 + more / max(result.calls, 1)
    elapsed = 0.0 if facts.ended is None else facts.ended.elapsed
    wanted = [
        ("budget", "audit", result.calls + more),
        ("max_cost", "audit", result.cost * part),
        ("questions", "stop", result.questions * part),
        ("seconds", "stop", elapsed * part),
    ]
    found = []
    for name, section, needed in wanted:
        limit = (spec.get(section) or {}).get(name)
        if limit is not None and limit < needed:
            found.append(f"--{name.replace('_', '-')} {rounded_up(needed):.10g}")
    return " ".join(found)


def rounded_up(value: float) -> float:
    """The next number above with two digits that count: 281 becomes 290, 0.0123 0.013."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.10g}")
