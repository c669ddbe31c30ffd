"""The first screen: how much goes wrong, what that cost, where it is worst, what to do next."""

from dataclasses import dataclass

from .baseline import NAMES
from .certified import words
from .evidence import Evidence
from .findings import pictured, worst
from .section import THIN, Section, amount, duration, fragment, money, percent
from .verdict import aims, next_steps, verdict


@dataclass(frozen=True)
class Tile:
    """One number of the headline."""

    label: str
    value: str
    note: str = ""


def section(evidence: Evidence) -> Section:
    """Verdict, cost, worst groups, next steps."""
    certificate, ended = evidence.certificate, evidence.facts.ended
    done = "" if certificate is None else words(certificate)["done"]
    groups = worst(evidence)
    html = fragment(
        "headline.html",
        verdict=verdict(evidence),
        standing="" if certificate is None else aims(certificate, done, evidence.standings),
        stopped=ended is not None,
        reached=ended is not None and certificate is not None and _all_settled(evidence),
        reason=((ended.reason if ended else None) or "no reason was given").replace("+-", "±"),
        waiting=len(evidence.draws) - len(evidence.calls),
        tiles=_tiles(evidence),
        worst=list(zip(groups, pictured(groups), strict=True)),
        certified=certificate is not None,
        steps=next_steps(evidence),
        warnings=[w.rstrip(".") for w in evidence.warnings],
    )
    return Section("Verdict", "verdict", html)


def _all_settled(evidence: Evidence) -> bool:
    return all(s.settled for s in evidence.standings)


def _tiles(evidence: Evidence) -> list[Tile]:
    """What the audit took, each figure once."""
    asked, size = len(evidence.table), evidence.facts.space.size
    calls = len(evidence.calls) + len(evidence.sources)
    share = f"{percent(asked / size)} of the {amount(size)} there are"
    tiles = [Tile("Calls", amount(calls), _calls_note(evidence))]
    for one in evidence.baselines:
        took = f"{100 * calls / one.calls:.0f}{THIN}%"
        note = f"for the same guarantee; this audit took {took}"
        tiles.append(Tile(NAMES[one.kind].capitalize(), one.amount, note))
    tiles.append(Tile("Questions judged", amount(asked), share))
    if evidence.cost:
        doubt = f"{money(evidence.unconfirmed)} of it may not have been charged"
        note = doubt if evidence.unconfirmed > 0 else "as the model reports it"
        tiles.append(Tile("Cost", money(evidence.cost), note))
    return [*tiles, Tile("Time", duration(evidence.elapsed), "interruptions left out")]


def _answered(evidence: Evidence) -> str:
    """What one call tells."""
    if evidence.settings.answers == "one" or len(evidence.concepts) == 1:
        return "one question"
    if evidence.facts.space.concepts_are == "classes":
        return "with the class of an image"
    return "every concept at once"


def _calls_note(evidence: Evidence) -> str:
    about = len([row for row in evidence.sources if not row.repeat_probe])
    note = f"each answers {_answered(evidence)}"
    if about:
        note = f"{amount(about)} of them about source images"
    again = len(evidence.sources) - about
    return f"{note}; {amount(again)} repeat probes" if again else note
