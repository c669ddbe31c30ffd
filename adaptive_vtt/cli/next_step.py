"""What may be done after an audit, as commands to copy."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from ..errors import InputError, ModelError
from ..journal import Journal, answered
from ..journal.facts import Facts, read_facts
from ..results.result import Result
from ..results.way_on import forecast, more_calls, raised, rounded_up

NEARLY = 2
"""Factor on the half-width wanted, above which nobody would settle for what was reached."""
MIN_LOSS = 0.5
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
    open_ = result.targets[~result.reached].to_dict("records")
    settled = found or (facts.certificate is not None and not open_)
    more = 0 if settled else more_calls(facts, result.calls, forecast(open_))
    if more and (limits := raised(facts, result.calls, result.questions, result.cost, more)):
        what = "goes on, to certify the rest" if facts.certificate else "goes on"
        found.append((f"avtt resume {folder} {limits}", what))
        found += _settling(folder, facts, result)
    answers = (answer for call in journal.calls() for answer in call.answers)
    if any((a.loss or 0) >= MIN_LOSS and a.unanswered is None for a in answers):
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
