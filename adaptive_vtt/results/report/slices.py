"""Slices: groups that the audit found to fail often, each with its interval and pictures."""

from dataclasses import dataclass

from ...certify.unseen import Unseen, unseen
from ...journal.facts import SliceFacts
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
    """One slice, ``found``. ``standing``: where its interval stands; ``unseen``: where the rate of
    the questions unseen by then lies; ``apart``: whether that lies wholly above the interval of all
    questions, where they are a target: the failures by which it was found speak for themselves."""

    found: SliceFacts
    standing: Standing
    unseen: Unseen | None
    apart: bool
    examples: list[tuple[Picture, str]]


def section(evidence: Evidence) -> Section | None:
    """A card per slice; None where none was looked for."""
    certificate = evidence.certificate
    if certificate is None or not (certificate.set_aside or certificate.slices):
        return None
    album, own = Album(ROOM), evidence.standings[certificate.registered :]
    rates = unseen(certificate, evidence.calls, [(s.lower, s.upper) for s in own])
    html = fragment(
        "slices.html",
        slices=[
            _shown(evidence, found, standing, rate, album)
            for found, standing, rate in zip(certificate.slices, own, rates, strict=True)
        ],
        share=certificate.set_aside,
        confidence=certificate.confidence,
        together=certificate.guarantee == "all",
        span=span,
    )
    return Section("Slices", "slices", html)


def _shown(
    evidence: Evidence, found: SliceFacts, standing: Standing, rate: Unseen | None, album: Album
) -> Shown:
    overall = [s.upper for s in evidence.standings if s.id.kind == "overall"]
    return Shown(
        found,
        standing,
        rate,
        bool(overall) and rate is not None and rate.lower > overall[0],
        _examples([f for f in evidence.failures if standing.place in f.targets], album),
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
