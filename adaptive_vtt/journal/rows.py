"""The rows of the journal, and a draw's proposal as bytes: calls and their probabilities."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import numpy as np

from ..errors import JournalError
from ..types import Floats, Indices

EXCLUDED = "excluded: "
"""Prefix of ``AnswerRow.unanswered`` where a question turned out not to count, because its source
image went unanswered, say; see ``certify.sequences.Step``."""


FIGURES = (
    "low_base", "high_base", "low_predicted", "high_predicted", "scale", "lo", "hi", "foreseen",
    "tilt", "tilt_bound", "uniform", "next_down", "next_up", "next_tilt", "next_foreseen",
)  # fmt: skip
"""The numbers of a ``certify.Bet`` in the order of ``MoveRow.figures``: columns of "moves"."""


@dataclass(frozen=True)
class FactRow:
    """A fact, or another value for one, as journaled; ``value`` is JSON."""

    position: int
    name: str
    value: str


class Reasons(TypedDict, total=False):
    """Why a call was drawn, as ``engine.selector.Why`` writes it and reports and ``verify`` read
    it: how many calls it was drawn among, and how many of them had a chance; what it sends and is
    expected to cost; the parts of its probability; the stratum, with the proposal over strata and
    what losses were expected there, by target where a call answers several questions; c, where it
    changed. A strategy adds what it went by."""

    candidates: int
    eligible: int
    expected_cost: float
    pixels: float
    characters: float
    models: float
    by_need: float
    curiosity: float
    even: float
    stratum: int
    shares: list[float]
    stratum_mean: float | list[float]
    stratum_variance: float | list[float]
    in_flight: int
    target: int
    predicted_loss: float


@dataclass(frozen=True)
class DrawRow:
    """One draw as journaled; ``proposal`` is empty where it was not read."""

    draw: int
    question: int
    call: int
    sample: str
    learned: int
    probability: float
    proposal: bytes
    why: Reasons
    elapsed: float
    moves: tuple["MoveRow", ...] = ()


@dataclass(frozen=True, slots=True)
class MoveRow:
    """What a draw fixed for one target; ``figures`` are those that FIGURES names."""

    target: int
    members: tuple[int, ...]
    active: bool
    figures: tuple[float, ...]


@dataclass(frozen=True)
class AnswerRow:
    """One answered question as journaled; see SCHEMA for what None means."""

    question: int
    call: int
    truth: int | None
    answer: float | None
    unanswered: str | None
    loss: float | None
    coordinate: float | None
    said: str | None = None
    details: Mapping[str, Any] | None = None

    @property
    def excluded(self) -> bool:
        """Whether the question turned out not to count; its ``loss`` is then a placeholder."""
        return (self.unanswered or "").startswith(EXCLUDED)


@dataclass(frozen=True)
class CallRow:
    """One paid answer as journaled, with the answers it brought and, maybe, its pictures.

    ``unconfirmed``: the part of ``cost`` that no server confirmed, so that it may not have been
    charged; ``reply``: the words that a chat model replied. So of the other rows.
    """

    call: int
    cost: float
    elapsed: float
    answers: tuple[AnswerRow, ...]
    pictures: tuple[bytes, bytes] | None = None
    unconfirmed: float = 0.0
    reply: str = ""


@dataclass(frozen=True)
class SourceRow:
    """The answer about a source image, as JSON values; see ``answer_json``, ``SourceCalls``.

    A number below 0 is a repeat probe, the call -1 - source asked again; see ``repeat_probes``.
    """

    source: int
    answers: tuple[Any, ...]
    cost: float
    elapsed: float
    unconfirmed: float = 0.0
    reply: str = ""

    @property
    def repeat_probe(self) -> bool:
        """Whether it is the answer to a call asked again."""
        return self.source < 0


@dataclass(frozen=True)
class JudgingRow:
    """A step of asking a judge model what an answer means; see ``engine.judging``.

    ``question`` -1: the answer to ``call`` as it came, one JSON value (``answer_json``) per
    concept sent in ``said``, committed before a judge is asked. Else what the judge replied, one
    value, when it was ``asked`` (a hash of the words) about the answer to that question. ``cost``
    is that of the answer, or of the reply. ``position``: 0, 1 ... in the order of commit.
    """

    position: int
    call: int
    question: int
    asked: str
    said: tuple[Any, ...]
    cost: float
    elapsed: float
    unconfirmed: float = 0.0
    reply: str = ""

    @property
    def received(self) -> bool:
        """Whether it is the answer that the judge is asked about, and no reply of the judge."""
        return self.question < 0


@dataclass(frozen=True)
class BeliefRow:
    """What an audit believed once it had learnt from ``draws`` draws; ``figures``: JSON values by
    name, see ``belief_groups``."""

    draws: int
    figures: Mapping[str, Any]


Row = FactRow | DrawRow | CallRow | SourceRow | JudgingRow | BeliefRow
JSON_FIELD = {SourceRow: "answers", JudgingRow: "said", BeliefRow: "figures"}
"""The field of a row that may hold anything JSON can."""


@dataclass(frozen=True)
class Link:
    """A row's place in the chain. ``kind``: "fact", "draw", "call", "source", "judging" or
    "belief"; ``row``: its number among those (of a call and a source, the number of the call and
    the source; of a belief, its draws)."""

    kind: str
    row: int
    seal: str


@dataclass(frozen=True)
class Tally:
    """How much a journal holds, without its rows.

    ``draws``: calls drawn; ``calls``: those of them that were answered; ``sources``: answers about
    source images, repeat probes included; ``cost`` of all answers, and the part of it
    ``unconfirmed``.
    """

    draws: int
    calls: int
    sources: int
    cost: float
    unconfirmed: float = 0.0


_MAX_BYTES = 2**30
"""A packed proposal takes 16 bytes per call; no audit looks at so many candidates."""


class PackedProposal(NamedTuple):
    """m calls (m,), ascending, and their probabilities (m,), none of them 0 as written."""

    calls: Indices
    probabilities: Floats


def pack_proposal(calls: Indices, probabilities: Floats) -> bytes:
    """The proposal (m,), (m,) as bytes: calls of probability zero are left out."""
    kept = np.flatnonzero(probabilities)
    kept = kept[np.argsort(calls[kept])]
    numbers = np.diff(calls[kept], prepend=0)
    body = numbers.astype("<i8").tobytes() + probabilities[kept].astype("<f8").tobytes()
    return zlib.compress(body, level=1)


def unpack_proposal(packed: bytes) -> PackedProposal:
    """The proposal that ``pack_proposal`` wrote, in order of call number.

    Raises JournalError for what it cannot have written, before much is unpacked.
    """
    unpacking = zlib.decompressobj()
    try:
        body = unpacking.decompress(packed, _MAX_BYTES)
    except (TypeError, zlib.error):
        body = b"damaged"
    if len(body) % 16 or not unpacking.eof:
        raise JournalError(
            "journal: expected the proposal of a draw, got other bytes; the journal is damaged: "
            "restore a copy of it"
        )
    half = len(body) // 2
    numbers = np.cumsum(np.frombuffer(body[:half], "<i8"))
    return PackedProposal(numbers, np.frombuffer(body[half:], "<f8"))
