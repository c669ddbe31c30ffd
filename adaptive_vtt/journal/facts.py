"""A journal's facts with names and types: what the rest of the program reads.

``Journal.facts`` gives them as stored, JSON by name. ``read_facts`` checks them, once; facts it
does not know are passed over.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, NonNegativeInt, ValidationError

from ..errors import JournalError
from ..types import SIDES, Bets, CallMode, ConceptsAre, Guarantee, Numbering, TargetId
from .cohort_facts import CohortFacts
from .endpoint_facts import BatchFacts as BatchFacts
from .endpoint_facts import Fact, LostFacts
from .endpoint_facts import WayFacts as WayFacts
from .protocol_facts import ProtocolFacts, protocol_of


class _Fact(BaseModel):
    model_config = Fact.model_config


AnyFact = TypeVar("AnyFact", bound=BaseModel)


class SpaceFacts(_Fact):
    """The question space. ``variants``: relation and severity; ``cell_counts`` C x 2: questions
    per concept and truth; ``seed``: of its follow-ups; ``concepts_are``: see ``OracleDefaults``;
    ``shown``: see ``QuestionSpace``."""

    fingerprint: str
    dataset: str
    samples: int
    concepts: tuple[str, ...]
    variants: tuple[tuple[str, int], ...]
    size: int
    cell_counts: tuple[tuple[int, int], ...]
    seed: int
    concepts_are: ConceptsAre
    shown: dict[str, str]

    @property
    def relations(self) -> list[str]:
        """Each once, in the order of the variants."""
        return list(dict.fromkeys(relation for relation, _ in self.variants))

    @property
    def numbering(self) -> Numbering:
        """How its questions are numbered."""
        return Numbering(len(self.variants), len(self.concepts))


class OracleFacts(_Fact):
    """``rates``: what the mean losses of a concept are called, and which truth each is about;
    None where there is none: ``regime``, how replies in words are read; ``judge``, who read the
    rest; ``metric``, of masks; ``tells_losses``: what is told of a question is its loss."""

    name: str = ""
    rates: dict[str, int] = dict(SIDES)
    regime: str | None = None
    judge: dict[str, Any] | None = None
    metric: str | None = None
    tells_losses: bool = False


class SettingsFacts(_Fact):
    """What the audit was begun with; see the arguments of ``Audit``. ``prices``: see
    ``engine.prices``, None where proposals do not go by them."""

    strategy: str
    strategy_options: dict[str, Any] = {}
    seed: int
    exploration: float
    candidates: int
    form: Literal["std", "variance"] = "std"
    answers: CallMode
    model: str
    oracle: OracleFacts = OracleFacts()
    prices: dict[str, float] | None = None


def goal_reached(half_width: float | None, at_most: float | None) -> str:
    """What a target is called of which all is known that was asked of an audit with these."""
    if at_most is None:
        return "certified"
    return "decided" if half_width is None else "certified and decided"


class VersusFacts(_Fact):
    """What two models are compared by; see ``certify.comparison``."""

    pivot: tuple[float, ...]
    scale: float
    margin: float
    at_least: float | None = None


class SliceFacts(_Fact):
    """A group of questions that was found while the audit went on; see ``slices``.

    ``name``: what it is, in words; ``found_by``: what proposed it; ``since``: the draw that its
    intervals start with, counted from 0; ``size``: its questions; ``seen``: those of them that
    were drawn before; ``masks``: which questions it has (``certify.population``); ``where``: the
    same as a filter, field -> values, None where no filter says it. What made it noticed, in the
    answers by then: ``images`` that were asked about, its ``rate`` and that of all, ``base``, each
    draw weighed by the inverse of its proposal; ``least_lift``: what rate / base is at least, among
    ``tried`` groups that were looked at.
    """

    name: str
    found_by: tuple[str, ...]
    since: int
    size: int
    seen: tuple[int, ...]
    masks: dict[str, Any]
    where: dict[str, list[Any]] | None
    images: int
    rate: float
    base: float
    least_lift: float
    tried: int

    @cached_property
    def before(self) -> frozenset[int]:
        """``seen`` as a set."""
        return frozenset(self.seen)

    @property
    def lift(self) -> float:
        """How many times the rate of all its rate was, when it was found."""
        return self.rate / self.base


class CertificateFacts(_Fact):
    """What is certified, to what, and how sure. Per target its name, its size (questions) and its
    identity; ``aim`` is the half-width that bets aim at, ``aims`` (draw, half-width) what they
    aimed at from which draw on, where that was changed (``certify.rules``); ``weights``: shares of
    1 - confidence per target, None where they are even; ``decided``: how targets are found to lie
    on one side of ``at_most``, by their intervals or as in ``certify.decisions``; ``set_aside``:
    the share of 1 - confidence that is kept for ``slices``, which are the last of the targets."""

    half_width: float | None
    at_most: float | None
    aim: float
    aims: tuple[tuple[int, float], ...] = ()
    confidence: float
    unanswered: Literal["loss", "both"]
    targets: tuple[str, ...]
    sizes: tuple[int, ...]
    ids: tuple[TargetId, ...]
    subsets: str = ""
    guarantee: Guarantee = "all"
    weights: tuple[float, ...] | None = None
    decided: Literal["by intervals", "by bets"] = "by intervals"
    bets: Bets
    versus: VersusFacts | None = None
    set_aside: float = 0.0
    slices: tuple[SliceFacts, ...] = ()

    @property
    def registered(self) -> int:
        """How many of the targets there were when the audit began: all but the slices."""
        return len(self.sizes) - len(self.slices)

    @property
    def since(self) -> tuple[int, ...]:
        """The draw that each target's bets start with."""
        return (0,) * self.registered + tuple(s.since for s in self.slices)

    @property
    def promise(self) -> str:
        """What holds, and how surely, in words."""
        sure, count = f"probability {self.confidence:g} at every moment", len(self.sizes)
        if count == 1:
            found = f"the interval holds with {sure}"
        elif self.guarantee == "each":
            found = (
                f"each of {count} intervals holds by itself with {sure}, not all of them at once"
            )
        else:
            found = f"all {count} intervals hold at once with {sure}"
        if self.versus is not None and self.versus.at_least is not None:
            claim = f"whether a difference is at least {self.versus.at_least:g}"
            return f"{found}; {claim} is decided rightly with the same probability"
        if not self.decides:
            return found
        every = "the" if count == 1 else "every" if self.guarantee == "all" else "each"
        return (
            f"{found}; {every} decision against {self.at_most:g} is right with the same probability"
        )

    @property
    def done(self) -> str:
        """What a target is called of which all is known that was asked."""
        return goal_reached(self.half_width, self.at_most)

    @property
    def decides(self) -> bool:
        """Whether targets are decided by bets of their own."""
        return self.decided == "by bets" and self.at_most is not None

    @property
    def paired(self) -> bool:
        """Whether two models were asked, so that rates are those of pairs and no error rates."""
        return self.versus is not None and self.versus.scale > 0

    @property
    def both(self) -> bool:
        """Whether an unanswered loss counts as 0 in lower bounds and as 1 in upper ones."""
        return self.unanswered == "both"


class DiscoverFacts(_Fact):
    """How slices are looked for: ``most``, ``by`` which proposers, and at which draws ``also``,
    beside those of ``audit.slices.looking``."""

    most: int
    by: tuple[str, ...]
    also: tuple[int, ...] = ()


class EndedFacts(_Fact):
    """Why the audit ended, and after how many seconds."""

    reason: str | None = None
    elapsed: float = 0.0


class RejudgedFacts(_Fact):
    """Which answers were judged anew: those of the journal ``source``, as of its ``head``, whose
    ``oracle`` judged them before."""

    source: str
    head: str
    oracle: str


class ReplayFacts(_Fact):
    """Whose draws came first: that audit's ``key``, their number, its journal's ``head`` then."""

    key: str
    draws: int
    head: str


class Facts(LostFacts, _Fact):
    """All that is read of a journal in which an audit was begun.

    ``intervals``: a row per target as of the end, in the order of the certificate; ``population``:
    see ``certify.population``; ``stop``: the rules in words; ``stop_levels``: the mean and maximal
    uncertainties, as shares of the prior, at which rules end the audit; ``endpoint``: what the
    model's client counted; ``key``, ``entropy`` and ``model_version``: see ``engine.audit_key``;
    ``spec`` and ``base``: SPEC.toml, None where Python began the audit, and the folder its paths
    start at; ``program``: a hash of both; ``parts``: see ``config.journaled.notes_of``;
    ``begun_with``: settings and certificate by name, as stored but for the targets' ids, to be
    compared whole on resuming; ``features``: see ``engine.assembly``; ``known_a``: of a
    comparison, the questions about which model A was not asked, as an earlier audit had;
    ``replay``: whose draws came first, None: all are its own; ``cohort``: other models that were
    known; ``discover``: how slices are looked for, None: they are not; ``begun_by``: the command
    that began it;
    ``rejudged``: see ``rejudging``, None where the model was asked; ``batches``: those of which
    answers were still awaited when it was last said, and those lost; ``ways``: where P(yes) comes
    from, of two models by "a" and "b", else by ""; ``bounds``: most tokens, sent and said, of an
    attempt that was counted at more than expected, by these sides and "judge".
    """

    space: SpaceFacts
    settings: SettingsFacts
    certificate: CertificateFacts | None = None
    population: dict[str, Any] | None = None
    intervals: list[dict[str, Any]] | None = None
    ended: EndedFacts | None = None
    key: str
    entropy: int | None = None
    model_version: str | None = None
    model_changed: bool = False
    self_taught: dict[str, Any] | None = None
    self_taught_changed: bool = False
    features: str | None = None
    features_changed: bool = False
    stop: tuple[str, ...] = ()
    stop_levels: tuple[tuple[Literal["mean", "max"], float], ...] = ()
    max_cost: float | None = None
    endpoint: dict[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    spec: dict[str, Any] | None = None
    base: str = "."
    program: str | None = None
    parts: dict[str, str | None] = {}
    begun_with: Mapping[str, Any] = {}
    known_a: frozenset[int] = frozenset()
    discover: DiscoverFacts | None = None
    replay: ReplayFacts | None = None
    begun_by: str | None = None
    batches: tuple[BatchFacts, ...] = ()
    ways: dict[str, WayFacts] = {}
    bounds: dict[str, tuple[NonNegativeInt, NonNegativeInt]] = {}
    rejudged: RejudgedFacts | None = None
    cohort: CohortFacts | None = None
    protocol: ProtocolFacts = ProtocolFacts()

    @property
    def all_calls(self) -> int:
        """At most so many calls about follow-ups bring an answer; where one answers all concepts,
        one per image."""
        if self.settings.answers == "one":
            return self.space.size
        return self.space.samples * len(self.space.variants)

    def key_of(self, draw: int) -> str:
        """The key that a draw of this number follows from."""
        replayed = self.replay is not None and draw < self.replay.draws
        return self.replay.key if replayed and self.replay else self.key


def read_facts(raw: Mapping[str, Any]) -> Facts:
    """The facts of ``Journal.facts``.

    Raises JournalError where no audit was begun, or a fact is not what it should be.
    """
    if "space" not in raw or "settings" not in raw:
        raise JournalError("journal: no audit was begun in it")
    return _read(Facts, _joined(raw))


def begun_facts(raw: Mapping[str, Any]) -> Facts | None:
    """``read_facts``; None where no audit was begun."""
    return read_facts(raw) if is_begun(raw) else None


def read_lost(raw: Mapping[str, Any]) -> LostFacts:
    """What ``Journal.facts`` tell of lost calls: in a journal that is to be begun, too, of those
    that it follows. Raises JournalError where that is not what it should be."""
    return _read(LostFacts, raw)


def is_begun(raw: Mapping[str, Any]) -> bool:
    """Whether an audit was begun in the journal of these facts."""
    return "space" in raw


def _read(kind: type[AnyFact], raw: Mapping[str, Any]) -> AnyFact:
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise JournalError(
            f"journal: the fact {where!r} is damaged: {first['msg'].lower()}, got "
            f"{str(first['input'])[:60]!r}; restore the journal from a copy"
        ) from None


def _joined(raw: Mapping[str, Any]) -> dict[str, Any]:
    """With what is read of several facts together."""
    found = dict(raw)
    space, settings, certificate = (raw.get(n) for n in ("space", "settings", "certificate"))
    if not (isinstance(space, dict) and isinstance(settings, dict)):
        return found
    found["protocol"] = protocol_of(raw)
    found["begun_with"] = {**settings, "certificate": without_ids(certificate)}
    found["certificate"] = _with_slices(certificate, raw.get("slices"))
    return found


def _with_slices(certificate: Any, slices: Any) -> Any:
    """A certificate with the slices that were found since among its targets."""
    if not (isinstance(certificate, dict) and isinstance(slices, list) and slices):
        return certificate
    found = [_read(SliceFacts, row) for row in slices]
    ids = [TargetId("slice", filter=s.name) for s in found]
    return {
        **certificate,
        "targets": [*certificate["targets"], *(target.name for target in ids)],
        "ids": [*certificate["ids"], *(target.as_dict() for target in ids)],
        "sizes": [*certificate["sizes"], *(s.size for s in found)],
        "slices": found,
    }


def without_ids(certificate: Any) -> Any:
    """A certificate without its targets' ids, which follow from their names; anything else as it
    is."""
    if not isinstance(certificate, dict):
        return certificate
    return {name: value for name, value in certificate.items() if name != "ids"}
