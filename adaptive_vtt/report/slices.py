"""Slices: groups that the audit found to fail often, each with its interval and pictures."""

from dataclasses import dataclass

from ..journal.facts import SliceFacts
from .album import Album, Picture
from .evidence import Evidence
from .failures import Failure
from .section import Section, fragment, span
from .target_status import Standing

EXAMPLES = 6
"""Pictures of a slice, at most."""
ROOM = 1_000_000
"""Characters of all pictures together."""


@dataclass(frozen=True)
class Shown:
    """One slice, ``found``. ``standing``: where its interval stands; ``apart``: whether it lies
    wholly above that of all questions, where they are a target."""

    found: SliceFacts
    standing: Standing
    apart: bool
    examples: list[tuple[Picture, str]]


def section(evidence: Evidence) -> Section | None:
    """A card per slice; None where none was looked for."""
    certificate = evidence.certificate
    if certificate is None or not (certificate.set_aside or certificate.slices):
        return None
    album = Album(ROOM)
    html = fragment(
        "slices.html",
        slices=[
            _shown(evidence, found, certificate.registered + number, album)
            for number, found in enumerate(certificate.slices)
        ],
        share=certificate.set_aside,
        confidence=certificate.confidence,
        together=certificate.guarantee == "all",
        span=span,
    )
    return Section("Slices", "slices", html)


def _shown(evidence: Evidence, found: SliceFacts, place: int, album: Album) -> Shown:
    standing = evidence.standings[place]
    overall = [s.upper for s in evidence.standings if s.id.kind == "overall"]
    return Shown(
        found,
        standing,
        bool(overall) and standing.lower > overall[0],
        _examples([f for f in evidence.failures if place in f.targets], album),
    )


def _examples(failures: list[Failure], album: Album) -> list[tuple[Picture, str]]:
    """Failing follow-ups, the surest mistakes first, each image once."""
    found: dict[str, tuple[Picture, str]] = {}
    for failure in failures:
        if len(found) == EXAMPLES:
            break
        if failure.pictures is None or failure.sample in found:
            continue
        number = album.add(failure.pictures[1])
        if number is not None:
            said = f"{failure.sample}, {failure.change}"
            found[failure.sample] = (album.pictures[number], said)
    return list(found.values())
