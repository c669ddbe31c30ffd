"""A journal's facts with names and types: what the rest of the program reads.

``Journal.facts`` gives them as stored, JSON by name. ``read_facts`` checks them, once; facts it
does not know are passed over.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError
from pydantic.dataclasses import dataclass as checked

from ..errors import InputError, JournalError
from ..families import OfSlice, TargetId
from ..types import SIDES, Bets, CallMode, ConceptsAre, EndedBy, Guarantee, JsonObject, Numbering
from ..utils.figures import USD, money


class Fact(BaseModel):
    """What facts have in common; unknown ones are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class CohortFacts(Fact):
    """What predictions knew of other models: their names, the ``keys`` of their audits (None where
    there was none), how many losses of each were ``known``, and a digest of those, ``content``.
    ``members``: what each follows the others by (see ``surrogates.cohort``); ``mean`` and
    ``variance``: of the prior of intercept, slope and factor, that was made of them."""

    models: tuple[str, ...]
    keys: tuple[str | None, ...]
    known: tuple[int, ...]
    content: str
    members: tuple[tuple[float, ...], ...]
    mean: tuple[float, ...]
    variance: tuple[float, ...]


Why = Literal["refused", "missing"]
"""Why a way to P(yes) did not work: the server refused it, or passed over it in silence."""


class BatchFacts(Fact):
    """Calls that were submitted together to a provider's batch service.

    ``key``: what the batch is marked with there; ``id``: what the provider calls it, None while
    it is not known whether it arrived; ``calls``: their numbers; ``form``: how they were phrased;
    ``at``: when, in seconds since 1970; ``lost``: nobody can tell whether it arrived, so that it
    counts as billed at its worst price.
    """

    key: str
    id: str | None = None
    calls: tuple[int, ...]
    form: str = ""
    at: int
    lost: bool = False


class WayFacts(Fact):
    """Where P(yes) comes from: ``yes_from``, "" while that is not known; what was tried ``instead``
    of it before, in vain, and why; ``partly``: some replies lacked it, and were read as words.
    ``without``: options that the server refuses, so that requests leave them out."""

    yes_from: str
    instead: dict[str, Why] = {}
    partly: bool = False
    without: tuple[str, ...] = ()


class LostFacts(Fact):
    """Calls that were sent, or may have been, and never came back.

    ``interrupted``: how many. Each is sent again and may then be paid for twice, so a cap on cost
    counts it at its worst price, ``worst``. ``counted``: calls that wait and that whoever goes on
    is not to count: they are among those and not sent again yet, or were surely never charged for.
    ``judge_...``: the same of a judge's calls.
    """

    interrupted: int = 0
    counted: tuple[int, ...] = ()
    worst: float = 0.0
    judge_interrupted: int = 0
    judge_counted: tuple[int, ...] = ()
    judge_worst: float = 0.0

    @property
    def cost(self) -> float:
        """What they may have cost, at most."""
        return self.interrupted * self.worst + self.judge_interrupted * self.judge_worst


@checked(frozen=True, config=ConfigDict(extra="ignore", allow_inf_nan=False))
class ProtocolFacts:
    """``template``: what the prompts' template is called, and ``template_hash``, of its words;
    ``temperature`` of the replies; ``per_call``: "one" question or "all" of an image; ``regime``:
    how replies in words are read, and by which ``judge`` where that is not sure; ``left_out``:
    images that were not asked about, as no region of them is marked. None: none, or not known."""

    template: str | None = None
    template_hash: str | None = None
    temperature: float | None = None
    per_call: str | None = None
    regime: str | None = None
    judge: str | None = None
    left_out: int = 0

    def as_dict(self) -> JsonObject:
        """The fields, for JSON."""
        return asdict(self)


def protocol_of(raw: Mapping[str, Any]) -> Any:
    """The fields of ``ProtocolFacts`` from ``Journal.facts``, wherever they stand there."""
    protocol = raw.get("protocol", {})
    if not isinstance(protocol, dict):
        return protocol
    space, settings = raw["space"], raw["settings"]
    oracle = settings.get("oracle")
    oracle = oracle if isinstance(oracle, dict) else {}
    return {
        **protocol,
        "template_hash": settings.get("template"),
        "per_call": settings.get("answers"),
        "regime": oracle.get("regime"),
        "judge": _judge(oracle.get("judge")),
        "left_out": space.get("left_out", 0),
    }


def _judge(judge: Any) -> Any:
    """What a judge is called, of what describes it; what describes none is refused as it is."""
    return judge.get("name") or judge.get("model") if isinstance(judge, dict) else judge


AnyFact = TypeVar("AnyFact", bound=BaseModel)


class SpaceFacts(Fact):
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


class OracleFacts(Fact):
    """``rates``: what the mean losses of a concept are called, and which truth each is about;
    ``needs_source``: whether answers are compared with the one about the source image;
    None where there is none: ``regime``, how replies in words are read; ``judge``, who read the
    rest; ``metric``, of masks; ``tells_losses``: the model's answer to a question is its loss."""

    name: str = ""
    rates: dict[str, int] = dict(SIDES)
    needs_source: bool = False
    regime: str | None = None
    judge: JsonObject | None = None
    metric: str | None = None
    tells_losses: bool = False


class SettingsFacts(Fact):
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
    proxies: list[str] = []
    prices: dict[str, float] | None = None


def goal_reached(half_width: float | None, at_most: float | None) -> str:
    """What a target is called of which all is known that was asked of an audit with these."""
    if at_most is None:
        return "certified"
    return "decided" if half_width is None else "certified and decided"


class VersusFacts(Fact):
    """What two models are compared by; see ``certify.decisions``."""

    pivot: tuple[float, ...]
    scale: float
    margin: float
    at_least: float | None = None


class SliceFacts(Fact):
    """A group of questions that was discovered during the audit; see ``slices``.

    ``name``: what it is, in words; ``found_by``: what proposed it; ``since``: the draw that its
    intervals start with, counted from 0; ``size``: its questions; ``seen``: those of them that
    were drawn before; ``masks``: which questions it has (``certify.targets``); ``where``: the
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
    masks: JsonObject
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
        """How many times the rate of all its rate was, when it was discovered."""
        return self.rate / self.base


@dataclass(frozen=True)
class Constant:
    """An ``answer`` that never depends on the image, the best of its kind about a target's
    questions, and the exact ``rate`` of what it loses."""

    answer: str
    rate: float


class CertificateFacts(Fact):
    """What is certified, to what, and how sure. Per target its name, its size (questions) and its
    identity; ``aim`` is the half-width that bets aim at, ``aims`` (draw, half-width) what they
    aimed at from which draw on, where that was changed (``certify.rules``); ``weights``: shares of
    1 - confidence per target, None where they are even; ``decided``: how targets are decided to lie
    on one side of ``at_most``, by their intervals or as in ``certify.decisions``; ``set_aside``:
    the share of 1 - confidence that is kept for ``slices``, which are the last of the targets;
    ``theta``: per target but slices what its bets on larger rates weigh (``certify.sequences``),
    fixed before the first draw; empty: 1/2; ``strata``: the stratum of each variant, -1: none,
    where they are not those of the targets, as another audit's draws came first."""

    half_width: float | None
    at_most: float | None
    aim: float
    aims: tuple[tuple[int, float], ...] = ()
    confidence: float
    unanswered: Literal["loss", "both"]
    targets: tuple[str, ...]
    sizes: tuple[int, ...]
    ids: tuple[Annotated[TargetId, Field(discriminator="kind")], ...]
    subsets: str = ""
    constants: tuple[Constant | None, ...] = ()
    guarantee: Guarantee = "all"
    weights: tuple[float, ...] | None = None
    decided: Literal["by intervals", "by bets", "by counting"] = "by intervals"
    bets: Bets
    versus: VersusFacts | None = None
    set_aside: float = 0.0
    slices: tuple[SliceFacts, ...] = ()
    theta: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = ()
    strata: tuple[int, ...] = ()

    @property
    def registered(self) -> int:
        """How many of the targets there were when the audit began: all but the slices."""
        return len(self.sizes) - len(self.slices)

    def pivot(self, place: int) -> tuple[float, float] | None:
        """The rate of the target at ``place`` at which two models are alike, and the scale of
        their difference; None where one model is audited."""
        versus = self.versus
        return None if versus is None else (versus.pivot[place % len(versus.pivot)], versus.scale)

    def constant(self, place: int) -> Constant | None:
        """The best constant answer of the target at ``place``; slices have none, nor do differences
        of two models."""
        has_none = self.versus is not None or place >= len(self.constants)
        return None if has_none else self.constants[place]

    @property
    def since(self) -> tuple[int, ...]:
        """The draw that each target's bets start with."""
        return (0,) * self.registered + tuple(s.since for s in self.slices)

    @property
    def counted(self) -> bool:
        """Whether every question is asked, so that nothing is drawn and rates are exact."""
        return self.decided == "by counting"

    @property
    def promise(self) -> str:
        """What holds, and how surely, in words."""
        if self.counted:
            return (
                "every question is asked and counted: a rate is exact once all of its questions "
                "are answered, and lies within its interval for certain until then"
            )
        sure, count = f"probability {self.confidence:g} at every moment", len(self.sizes)
        if count == 1:
            text = f"the interval holds with {sure}"
        elif self.guarantee == "each":
            text = f"each of {count} intervals holds by itself with {sure}, not all of them at once"
        else:
            text = f"all {count} intervals hold at once with {sure}"
        if self.versus is not None and self.versus.at_least is not None:
            claim = f"whether a difference is at least {self.versus.at_least:g}"
            return f"{text}; {claim} is decided rightly with the same probability"
        if not self.decides:
            return text
        every = "the" if count == 1 else "every" if self.guarantee == "all" else "each"
        return (
            f"{text}; {every} decision against {self.at_most:g} is right with the same probability"
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
    def drops(self) -> bool:
        """True of drops, where losses are those of changed and original images together."""
        return bool(self.ids) and self.ids[0].signed

    @property
    def both(self) -> bool:
        """Whether an unanswered loss counts as 0 in lower bounds and as 1 in upper ones."""
        return self.unanswered == "both"


class DiscoverFacts(Fact):
    """How slices are looked for: ``most``, ``by`` which proposers, and at which draws ``also``,
    with those of ``audit.slices.looking``."""

    most: int
    by: tuple[str, ...]
    also: tuple[int, ...] = ()


class EndedFacts(Fact):
    """Why the audit ended, by what, and after how many seconds."""

    reason: str | None = None
    elapsed: float = 0.0
    by: EndedBy = ""


class RejudgedFacts(Fact):
    """Which answers were judged anew: those of the journal ``source``, as of its ``head``, whose
    ``oracle`` judged them before; ``reading``: how kept replies were read anew, in words, None
    where they were not."""

    source: str
    head: str
    oracle: str
    reading: str | None = None


class ReplayFacts(Fact):
    """Whose draws came first: that audit's ``key``, their number, its journal's ``head`` then."""

    key: str
    draws: int
    head: str


class Facts(LostFacts):
    """All that is read of a journal in which an audit was begun.

    ``intervals``: a row per target as of the end, in the order of the certificate; ``population``:
    see ``certify.targets``; ``stop``: the rules in words; ``stop_levels``: the mean and maximal
    uncertainties, as shares of the prior, at which rules end the audit; ``endpoint``: what the
    model's client counted; ``key``, ``goal``, ``entropy`` and ``model_version``: see
    ``engine.audit_key``; ``spec`` and ``base``: SPEC.toml, None where Python began the audit, and
    the folder its paths start at; ``named``: its file's name there and the --set changes, or
    --demo, as typed;
    ``program``: a hash of both; ``parts``: see ``config.journaled.notes_of``;
    ``begun_with``: settings and certificate by name, as stored but for the targets' ids, to be
    compared whole on resuming; ``features``: see ``engine.assembly``; ``known_a``: of a
    comparison, the questions about which model A was not asked, as an earlier audit had;
    ``replay``: whose draws came first, None: all are its own; ``cohort``: other models that were
    known; ``discover``: how slices are looked for, None: they are not; ``begun_by``: the command
    that began it; ``call``: what Python began it with, see ``audit.shortcut.called_again``;
    ``files``: of a comparison, what holds the models, where that distinguishes them;
    ``rejudged``: see ``rejudging``, None where the model was asked; ``batches``: those of which
    answers were still awaited when last written, and those lost; ``ways``: where P(yes) comes
    from, of two models by "a" and "b", else by ""; ``trial_calls``: calls of a free model before
    the first draw, which timed it and checked the order of its columns; ``bounds``: most tokens,
    sent and received, of an attempt counted at more than expected, by these sides and "judge";
    ``currency``: of all costs, as ISO 4217 calls it.
    """

    space: SpaceFacts
    settings: SettingsFacts
    certificate: CertificateFacts | None = None
    population: JsonObject | None = None
    intervals: list[JsonObject] | None = None
    ended: EndedFacts | None = None
    key: str
    goal: dict[str, float] = {}
    entropy: int | None = None
    model_version: str | None = None
    model_changed: bool = False
    self_taught: JsonObject | None = None
    self_taught_changed: bool = False
    features: str | None = None
    features_changed: bool = False
    stop: tuple[str, ...] = ()
    stop_levels: tuple[tuple[Literal["mean", "max"], float], ...] = ()
    max_cost: float | None = None
    currency: str = USD
    endpoint: JsonObject | None = None
    warnings: tuple[str, ...] = ()
    spec: JsonObject | None = None
    base: str = "."
    named: tuple[str, ...] = Field(("SPEC.toml",), min_length=1)
    program: str | None = None
    parts: dict[str, str | None] = {}
    begun_with: Mapping[str, Any] = {}
    known_a: frozenset[int] = frozenset()
    discover: DiscoverFacts | None = None
    replay: ReplayFacts | None = None
    begun_by: str | None = None
    call: JsonObject | None = None
    files: tuple[str, str] | None = None
    batches: tuple[BatchFacts, ...] = ()
    ways: dict[str, WayFacts] = {}
    bounds: dict[str, tuple[NonNegativeInt, NonNegativeInt]] = {}
    trial_calls: NonNegativeInt = 0
    rejudged: RejudgedFacts | None = None
    cohort: CohortFacts | None = None
    protocol: ProtocolFacts = ProtocolFacts()

    def money(self, cost: float) -> str:
        """A cost in the audit's currency, in words."""
        return money(cost, self.currency)

    def money_in_doubt(self, unconfirmed: float) -> list[str]:
        """What nobody knows of the money, a sentence part each: how much of the cost no server
        confirmed, ``unconfirmed``, and what lost calls may have cost in addition."""
        texts = []
        if unconfirmed > 0:
            texts.append(f"{self.money(unconfirmed)} of it may not have been charged")
        if self.cost > 0:
            count = self.interrupted + self.judge_interrupted
            calls = f"{count:,} lost call{'s' * (count != 1)}"
            texts.append(f"up to {self.money(self.cost)} more may have been charged for {calls}")
        return texts

    @property
    def all_calls(self) -> int:
        """At most so many calls about follow-ups bring an answer; where one answers all concepts,
        one per image."""
        if self.settings.answers == "one":
            return self.space.size
        return self.space.samples * len(self.space.variants)

    def refuse_pairs(self, what: str, remedy: str) -> None:
        """Raises InputError where two models were asked, of which ``what`` has no meaning."""
        certificate = self.certificate
        if certificate is not None and (certificate.paired or certificate.drops):
            got = "a comparison of two" if certificate.paired else "one of drops, not of rates"
            raise InputError(f"{what}: expected an audit of one model, got {got}; {remedy}")

    @property
    def least_failing(self) -> float:
        """The least loss of a question that failed: of drops, of one that got worse."""
        drops = self.certificate is not None and self.certificate.drops
        return math.nextafter(0.5, 1) if drops else 0.5

    def key_of(self, draw: int) -> str:
        """The key that a draw of this number follows from."""
        return self.replay.key if self.replay and draw < self.replay.draws else self.key


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
        first = error.errors(include_url=False)[0]
        tag = first.get("ctx", {}).get("discriminator", "")  # of a target's family, in quotes
        where = ".".join(filter(None, [*map(str, first["loc"]), tag.strip("'")]))
        raise JournalError(
            f"journal: the fact {where!r} is damaged: {first['msg'].lower()}, got "
            f"{str(first['input'])[:60]!r}; restore the journal from a copy"
        ) from None


def _joined(raw: Mapping[str, Any]) -> JsonObject:
    """With what is read of several facts together."""
    joined = dict(raw)
    space, settings, certificate = (raw.get(n) for n in ("space", "settings", "certificate"))
    if not (isinstance(space, dict) and isinstance(settings, dict)):
        return joined
    joined["begun_with"] = {**settings, "certificate": without_ids(certificate)}
    joined["certificate"] = _with_slices(certificate, raw.get("slices"))
    return {**joined, "protocol": protocol_of(raw)}


def _with_slices(certificate: Any, slices: Any) -> Any:
    """A certificate with the slices that were discovered since among its targets."""
    if not (isinstance(certificate, dict) and isinstance(slices, list) and slices):
        return certificate
    slices_read = [_read(SliceFacts, row) for row in slices]
    ids = [OfSlice(s.name) for s in slices_read]
    return {
        **certificate,
        "targets": [*certificate["targets"], *(target.name for target in ids)],
        "ids": [*certificate["ids"], *(target.as_dict() for target in ids)],
        "sizes": [*certificate["sizes"], *(s.size for s in slices_read)],
        "slices": slices_read,
    }


def without_ids(certificate: Any) -> Any:
    """A certificate without its targets' ids, which follow from their names; anything else as it
    is."""
    if not isinstance(certificate, dict):
        return certificate
    return {name: value for name, value in certificate.items() if name != "ids"}
