"""What the audit was begun with."""

from .evidence import Evidence
from .section import Section, amount, fragment, percent


def section(evidence: Evidence) -> Section:
    """Model, dataset, strategy, rules, and the head that ``avtt verify`` looks for."""
    return Section("Settings", "settings", fragment("settings.html", settings=_settings(evidence)))


def _settings(evidence: Evidence) -> list[tuple[str, str]]:
    space, chosen = evidence.facts.space, evidence.settings
    options = ", ".join(f"{k} {v}" for k, v in chosen.strategy_options.items())
    return [
        ("Model", chosen.model),
        *_protocol(evidence),
        ("Dataset", f"{space.dataset}, {amount(space.samples)} samples"),
        ("Concepts", ", ".join(evidence.concepts)),
        ("Relations", ", ".join(evidence.relations)),
        ("Strategy", chosen.strategy + (f" ({options})" if options else "")),
        ("Stops at", "; ".join(evidence.rules) or "no rule: until all is asked"),
        ("Seed", str(chosen.seed)),
        ("Uniform share of the proposal", percent(chosen.exploration)),
        ("Candidates per draw", f"at most {amount(chosen.candidates)}"),
        ("Head of the journal", evidence.head),
    ]


def _protocol(evidence: Evidence) -> list[tuple[str, str]]:
    """How the model was asked, as far as that is known."""
    told = evidence.facts.protocol
    template = None
    if told.template_hash is not None:
        template = f"{told.template or 'not named'} (hash {told.template_hash})"
    at = None if told.temperature is None else f"{told.temperature:g}"
    judge = "" if told.judge is None else f", judged by {told.judge}"
    reading = None if told.regime is None else told.regime + judge
    named = [("Prompt template", template), ("Temperature", at), ("Replies read by", reading)]
    return [(name, text) for name, text in named if text is not None]
