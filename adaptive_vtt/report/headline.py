"""Section 1: what was audited, how it ended, and the worst that was found."""

from dataclasses import dataclass
from typing import Any

from .evidence import Evidence
from .findings import findings
from .section import FEW, Section, amount, duration, fragment, percent


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
        few=FEW,
        unanswered=int(evidence.table["answer"].isna().sum()),
        adaptive=evidence.adaptive,
        settings=_settings(evidence),
    )
    return Section("Overview", "overview", html)


def _status(evidence: Evidence) -> dict[str, Any]:
    """Whether and why it stopped, and how many calls still wait."""
    ended = evidence.facts.get("ended")
    return {
        "stopped": ended is not None,
        "reason": (ended or {}).get("reason") or "no reason was given",
        "waiting": len(evidence.draws) - len(evidence.calls),
    }


def _tiles(evidence: Evidence) -> list[Tile]:
    table = evidence.table
    asked, size = len(table), evidence.facts["space"]["size"]
    answered = int(table["answer"].notna().sum())
    every = "every concept at once" if evidence.settings["answers"] == "all" else "one question"
    return [
        Tile("Calls of the model", amount(len(evidence.calls)), f"each answers {every}"),
        Tile("Questions answered", amount(answered), f"of {amount(asked)} asked"),
        Tile("Unanswered", amount(asked - answered), "refused, timed out or unusable"),
        Tile("Share of the space asked", percent(asked / size), f"of {amount(size)} questions"),
        Tile("Cost", amount(sum(c.cost for c in evidence.calls)), "as the model reports it"),
        Tile("Time", duration(evidence.elapsed), "interruptions left out"),
    ]


def _settings(evidence: Evidence) -> list[tuple[str, str]]:
    space, settings = evidence.facts["space"], evidence.settings
    options = ", ".join(f"{k} {v}" for k, v in settings["strategy_options"].items())
    return [
        ("Model", settings["model"]),
        ("Dataset", f"{space['dataset']}, {amount(space['samples'])} samples"),
        ("Concepts", ", ".join(evidence.concepts)),
        ("Relations", ", ".join(evidence.relations)),
        ("Strategy", settings["strategy"] + (f" ({options})" if options else "")),
        ("Stops at", "; ".join(evidence.facts.get("stop", [])) or "no rule: until all is asked"),
        ("Seed", str(settings["seed"])),
        ("Uniform share of the law", percent(settings["floor"])),
        ("Candidates per draw", f"at most {amount(settings['candidates'])}"),
    ]
