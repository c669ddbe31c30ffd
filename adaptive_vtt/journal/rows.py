"""The rows of the journal, and a draw's proposal as bytes: calls and their probabilities."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import numpy as np

from ..errors import JournalError
from ..types import Floats, Indices

EXCLUDED = "excluded: "
"""Prefix of ``AnswerRow.unanswered`` if a question does not count after all, for example because
its source image went unanswered; see ``certify.sequences.Step``."""


FIGURES = (
    "low_base", "high_base", "low_predicted", "high_predicted", "scale", "lo", "hi", "foreseen",
    "tilt", "tilt_bound", "uniform", "next_down", "next_up", "next_tilt", "next_foreseen",
)  # fmt: skip
"""The numbers of a ``certify.Bet`` in the order of ``MoveRow.figures``: columns of "moves"."""


@dataclass(frozen=True)
class FactRow:
    """A fact, or a new value of one, as journaled; ``value`` is JSON."""

    position: int
    name: str
    value: str


class Reasons(TypedDict, total=False):
    """Why a call was drawn, as ``engine.selector.Why`` writes it; strategies add their reasons.

    Attributes:
        candidates: Number of candidates that the call was drawn among.
        eligible: How many of them had a probability above 0.
        expected_cost: Expected cost of the call.
        pixels: Number of pixels that it sends.
        characters: Number of characters that it sends.
        models: Share of two compared models that the call asks, if it is not 1.
        by_need: Part of the call's probability that is due to need.
        curiosity: Part that is due to uncertainty and unpredictability.
        even: Part that is uniform.
        stratum: Stratum of the call.
        shares: Proposal over strata.
        stratum_mean: Expected loss in the stratum, by target if a call answers several questions.
        stratum_variance: Expected variance of losses there, in the same form.
        in_flight: Number of calls in flight, if it changes with this draw.
        target: Target that most of the call's need comes from.
        predicted_loss: Predicted loss of the question drawn.
    """

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
    """One draw as journaled; ``proposal`` is empty if it was not read."""

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
    """The bet that a draw fixed for one target.

    Attributes:
        target: Number of the target.
        members: Questions of the call that belong to it.
        active: False if no candidate belonged to it.
        figures: Numbers of the bet, in the order of FIGURES.
    """

    target: int
    members: tuple[int, ...]
    active: bool
    figures: tuple[float, ...]


@dataclass(frozen=True)
class AnswerRow:
    """One answered question as journaled; SCHEMA explains the columns, and None in each."""

    question: int
    call: int
    truth: int | None
    answer: float | None
    unanswered: str | None
    loss: float | None
    coordinate: float | None
    answer_text: str | None = None
    details: Mapping[str, Any] | None = None

    @property
    def excluded(self) -> bool:
        """True if the question does not count after all; its ``loss`` is then a placeholder."""
        return (self.unanswered or "").startswith(EXCLUDED)


@dataclass(frozen=True)
class CallRow:
    """One paid call as journaled.

    The fields of money and time have the same meaning in the other rows.

    Attributes:
        call: Number of the call.
        cost: Its cost in the audit's currency.
        elapsed: Seconds since the audit began.
        answers: The answers to its questions.
        pictures: Source and follow-up as PNG, kept for some failures.
        unconfirmed: The part of the cost that no server confirmed and that may not have been
            charged.
        reply: A chat model's reply as received, "" for other models.
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
    """The answer about a source image, or to a repeat probe, as journaled.

    Attributes:
        source: Number of the source (see ``SourceCalls``). Below 0 it is a repeat probe: the call
            -1 - source, asked again (see ``repeat_probes``).
        answers: One JSON value per concept sent; see ``answer_json``.
    """

    source: int
    answers: tuple[Any, ...]
    cost: float
    elapsed: float
    unconfirmed: float = 0.0
    reply: str = ""

    @property
    def repeat_probe(self) -> bool:
        """True if a call was asked again."""
        return self.source < 0


@dataclass(frozen=True)
class JudgingRow:
    """A step of asking a judge model what an answer means; see ``engine.judge_calls``.

    First the model's answer is committed, then a reply of the judge per question.

    Attributes:
        position: 0, 1 ... in the order of commit.
        call: Number of the call.
        question: The question that the judge was asked about, -1 for the model's answer.
        asked: Hash of the words that the judge was sent, "" for the model's answer.
        answers: The model's answer, one JSON value (``answer_json``) per concept sent; or the
            judge's reply, one value.
        cost: Cost of the answer, or of the judge's reply.
    """

    position: int
    call: int
    question: int
    asked: str
    answers: tuple[Any, ...]
    cost: float
    elapsed: float
    unconfirmed: float = 0.0
    reply: str = ""

    @property
    def received(self) -> bool:
        """True for the model's answer, False for a reply of the judge."""
        return self.question < 0


@dataclass(frozen=True)
class BeliefRow:
    """The belief after ``draws`` draws: ``figures`` by name; see ``belief_groups``."""

    draws: int
    figures: Mapping[str, Any]


Row = FactRow | DrawRow | CallRow | SourceRow | JudgingRow | BeliefRow
JSON_FIELD = {SourceRow: "answers", JudgingRow: "answers", BeliefRow: "figures"}
"""The field of each kind of row that holds arbitrary JSON."""


@dataclass(frozen=True)
class Link:
    """A row's link in the chain.

    Attributes:
        kind: "fact", "draw", "call", "source", "judging" or "belief".
        row: Its position (facts, judging), its number (draws, calls, sources), or its number of
            draws (beliefs).
        seal: Hash of the row and of the seal before it.
    """

    kind: str
    row: int
    seal: str


@dataclass(frozen=True)
class Tally:
    """Counts of a journal, without its rows.

    Attributes:
        draws: Number of calls drawn.
        calls: Number of calls answered.
        sources: Number of answers about source images, repeat probes included.
        cost: Cost of all answers.
        unconfirmed: The part of it that no server confirmed.
    """

    draws: int
    calls: int
    sources: int
    cost: float
    unconfirmed: float = 0.0


_MAX_BYTES = 2**30
"""Limit of an unpacked proposal. It has 16 bytes per call, and no audit has 2**26 candidates."""


class PackedProposal(NamedTuple):
    """The calls (m,) of a proposal, ascending, and their probabilities (m,), all above 0."""

    calls: Indices
    probabilities: Floats


def pack_proposal(calls: Indices, probabilities: Floats) -> bytes:
    """Return a proposal as bytes, without calls of probability zero.

    Args:
        calls: (m,) call numbers.
        probabilities: (m,) their probabilities.
    """
    kept = np.flatnonzero(probabilities)
    kept = kept[np.argsort(calls[kept])]
    numbers = np.diff(calls[kept], prepend=0)
    body = numbers.astype("<i8").tobytes() + probabilities[kept].astype("<f8").tobytes()
    return zlib.compress(body, level=1)


def unpack_proposal(packed: bytes) -> PackedProposal:
    """Return the proposal that ``pack_proposal`` packed, in order of call number.

    Raises:
        JournalError: ``pack_proposal`` cannot have written these bytes. No more than
            ``_MAX_BYTES`` are unpacked to find out.
    """
    unpacking = zlib.decompressobj()
    try:
        body = unpacking.decompress(packed, _MAX_BYTES)
    except (TypeError, zlib.error):
        body = b"damaged"
    if len(body) % 16 or not unpacking.eof:
        raise damaged("journal", "the proposal of a draw", "other bytes")
    half = len(body) // 2
    numbers = np.cumsum(np.frombuffer(body[:half], "<i8"))
    return PackedProposal(numbers, np.frombuffer(body[half:], "<f8"))


def damaged(where: str, expected: str, got: str) -> JournalError:
    """Return the error of a place in a journal that holds something else than was written."""
    return JournalError(
        f"{where}: expected {expected}, got {got}; the journal is damaged: restore a copy of it"
    )
