"""What was audited, how it ended, and the worst that was found."""

from dataclasses import dataclass
from typing import Any

from ..engine.canaries import repeated
from ..journal.facts import CertificateFacts
from ..journal.rows import EXCLUDED
from .certified import words
from .evidence import Evidence
from .findings import certified_findings, findings
from .section import FEW, Section, amount, duration, fragment, money, outward, percent, precise
from .target_status import Standing

OPEN = 5
"""Open targets that are named, at most."""


@dataclass(frozen=True)
class Tile:
    """One number of the headline."""

    label: str
    value: str
    note: str = ""


def section(evidence: Evidence) -> Section:
    """Headline, worst findings, settings."""
    html = fragment(
        "headline.html",
        tiles=_tiles(evidence),
        status=_status(evidence),
        findings=findings(evidence),
        certified=certified_findings(evidence),
        standing=_standing(evidence),
        guarantee=evidence.certificate.guarantee if evidence.certificate else None,
        limit=evidence.certificate.at_most if evidence.certificate else None,
        few=FEW,
        outward=outward,
        unanswered=int(evidence.table["answer"].isna().sum()),
        adaptive=evidence.adaptive,
        settings=_settings(evidence),
        warnings=[w.rstrip(".") for w in evidence.warnings],
    )
    return Section("Overview", "overview", html)


def _status(evidence: Evidence) -> dict[str, Any]:
    """Whether and why it stopped, and how many calls still wait."""
    ended = evidence.facts.ended
    return {
        "stopped": ended is not None,
        "reason": (ended.reason if ended else None) or "no reason was given",
        "waiting": len(evidence.draws) - len(evidence.calls),
    }


def _standing(evidence: Evidence) -> dict[str, Any] | None:
    """How many targets are settled, which are open, and which contradicted; None where nothing is
    certified."""
    certificate, found = evidence.certificate, evidence.standings
    if certificate is None:
        return None
    contradicted = [s.name for s in found if s.contradicted]
    open_ = [s for s in found if not (s.settled or s.contradicted)]
    open_.sort(key=lambda s: -s.half_width)
    return {
        "words": words(certificate),
        "settled": len(found) - len(open_) - len(contradicted),
        "targets": len(found),
        "open": [(s.name, _lacking(s, certificate)) for s in open_[:OPEN]],
        "more": len(open_) - OPEN,
        "contradicted": contradicted,
    }


def _lacking(standing: Standing, certificate: CertificateFacts) -> str:
    """What an open target still takes."""
    if certificate.half_width is not None and not standing.certified:
        if standing.more_calls is None:
            return f"±{precise(standing.half_width)} so far"
        return f"about {amount(standing.more_calls)} more calls"
    lower, upper = outward(standing.lower, standing.upper)
    return f"between {precise(lower)} and {precise(upper)}"


def _certified_tiles(evidence: Evidence) -> list[Tile]:
    standing, found = _standing(evidence), evidence.standings
    if standing is None:
        return []
    worst = max(found, key=lambda s: s.upper)
    return [
        Tile(
            standing["words"]["done"].capitalize(),
            f"{amount(standing['settled'])} of {amount(len(found))}",
            "target" if len(found) == 1 else "targets",
        ),
        Tile("Highest upper bound", precise(outward(0, worst.upper)[1]), worst.name),
    ]


def _tiles(evidence: Evidence) -> list[Tile]:
    table = evidence.table
    asked, size = len(table), evidence.facts.space.size
    answered = int(table["answer"].notna().sum())
    excluded = int(table["unanswered"].str.startswith(EXCLUDED, na=False).sum())
    calls = len(evidence.calls) + len(evidence.sources)
    tiles = [
        *_certified_tiles(evidence),
        Tile("Calls of the model", amount(calls), _calls_note(evidence)),
        Tile("Questions answered", amount(answered), f"of {amount(asked)} asked"),
        Tile("Unanswered", amount(asked - answered - excluded), "refused, timed out or unusable"),
        Tile("Share of the space asked", percent(asked / size), f"of {amount(size)} questions"),
        Tile("Cost", money(evidence.cost), "as the model reports it"),
        Tile("Time", duration(evidence.elapsed), "interruptions left out"),
    ]
    if excluded:
        note = "nothing to compare with; rates leave them out"
        if evidence.certificate is not None and not evidence.certificate.bets.ratio:
            note = "nothing to compare with; counted as right below and wrong above"
        tiles.append(Tile("Excluded", amount(excluded), note))
    if again := repeated(evidence.sources, evidence.calls):
        note = f"of {amount(again.answers)} answers asked again to notice a model that changes"
        tiles.append(Tile("Canaries that differ", amount(again.differ), note))
    if lost := evidence.facts.interrupted:
        note = "on their way when the audit was interrupted; perhaps paid for twice"
        tiles.append(Tile("Asked again", amount(lost), note))
    return tiles


def _calls_note(evidence: Evidence) -> str:
    every = "every concept at once" if evidence.settings.answers == "all" else "one question"
    about = len([row for row in evidence.sources if not row.canary])
    note = f"{amount(about)} of them about source images" if about else f"each answers {every}"
    again = len(evidence.sources) - about
    return f"{note}; {amount(again)} canaries" if again else note


def _settings(evidence: Evidence) -> list[tuple[str, str]]:
    space, settings = evidence.facts.space, evidence.settings
    options = ", ".join(f"{k} {v}" for k, v in settings.strategy_options.items())
    return [
        ("Model", settings.model),
        ("Dataset", f"{space.dataset}, {amount(space.samples)} samples"),
        ("Concepts", ", ".join(evidence.concepts)),
        ("Relations", ", ".join(evidence.relations)),
        ("Strategy", settings.strategy + (f" ({options})" if options else "")),
        ("Stops at", "; ".join(evidence.facts.stop) or "no rule: until all is asked"),
        ("Seed", str(settings.seed)),
        ("Uniform share of the law", percent(settings.floor)),
        ("Candidates per draw", f"at most {amount(settings.candidates)}"),
        ("Head of the journal", evidence.head),
    ]
