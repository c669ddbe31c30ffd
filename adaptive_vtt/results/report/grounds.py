"""What the guarantee of an audit that certifies rests on."""

from .evidence import Evidence
from .section import Section, fragment


def section(evidence: Evidence) -> Section | None:
    """The assumptions, a sentence each; None where nothing is certified."""
    if evidence.certificate is None:
        return None
    html = fragment(
        "grounds.html",
        certificate=evidence.certificate,
        settings=evidence.settings,
        size=evidence.facts.space.size,
    )
    return Section("What the guarantee rests on", "grounds", html)
