"""A journal's facts with names and types, as the rest of the program reads them.

``Journal.facts`` returns them as stored, JSON by name. ``read_facts`` checks them once, and
ignores facts that it does not know.
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

AnyFact = TypeVar("AnyFact", bound=BaseModel)


class Fact(BaseModel):
    """Base of all facts: immutable, without NaN or infinity, unknown fields ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class CohortFacts(Fact):
    """The other models whose answers predictions were based on; see ``surrogates.cohort``.

    Attributes:
        models: Their names.
        keys: The key of each model's audit, None for answers that came from no audit.
        known: How many losses of each model were known.
        content: Hash of those losses.
        members: Per model, the coefficients by which it follows the others.
        mean: Prior mean of intercept, slope and factor, fitted to the cohort.
        variance: Prior variance of the same three.
    """

    models: tuple[str, ...]
    keys: tuple[str | None, ...]
    known: tuple[int, ...]
    content: str
    members: tuple[tuple[float, ...], ...]
    mean: tuple[float, ...]
    variance: tuple[float, ...]


Why = Literal["refused", "missing"]
"""Why an elicitation mode did not work: the server refused it, or ignored it silently."""


class BatchFacts(Fact):
    """Calls that were submitted together to a provider's batch service.

    Attributes:
        key: The mark that we gave the batch at the provider.
        id: The provider's name of it, None until it is known to have arrived.
        calls: Numbers of the calls.
        form: How the calls were phrased.
        at: When it was submitted, in seconds since 1970.
        lost: True if it is unknown whether the batch arrived. It then counts as billed, at its
            worst price.
    """

    key: str
    id: str | None = None
    calls: tuple[int, ...]
    form: str = ""
    at: int
    lost: bool = False


class WayFacts(Fact):
    """How P(yes) is elicited from a model's server.

    Attributes:
        yes_from: The elicitation mode, "" until it is known.
        instead: The modes that were tried before and failed, with the reason for each.
        partly: True if some replies lacked P(yes) and their words were read instead.
        without: Options that the server refuses; requests omit them.
    """

    yes_from: str
    instead: dict[str, Why] = {}
    partly: bool = False
    without: tuple[str, ...] = ()


class LostFacts(Fact):
    """Calls that were sent, or may have been, and never came back.

    Each is sent again and may then be paid for twice, so a cap on cost counts it at its worst
    price. The fields ``judge_...`` are the same for a judge's calls.

    Attributes:
        interrupted: Number of lost calls.
        counted: Pending calls that a resumed audit must not count as lost: they are included in
            ``interrupted`` and not sent again yet, or were surely never charged.
        worst: Highest price of one lost call.
    """

    interrupted: int = 0
    counted: tuple[int, ...] = ()
    worst: float = 0.0
    judge_interrupted: int = 0
    judge_counted: tuple[int, ...] = ()
    judge_worst: float = 0.0

    @property
    def cost(self) -> float:
        """The most that the lost calls may have cost."""
        return self.interrupted * self.worst + self.judge_interrupted * self.judge_worst


@checked(frozen=True, config=ConfigDict(extra="ignore", allow_inf_nan=False))
class ProtocolFacts:
    """How the model was asked and its replies were read. None means none, or unknown.

    Attributes:
        template: Name of the prompt template.
        template_hash: Hash of the template's text.
        temperature: Sampling temperature of the replies.
        per_call: "one" question per call, or "all" questions about an image.
        regime: How replies in words are read.
        judge: Name of the judge model that reads replies which the regime cannot.
        left_out: Number of images without a marked region, which were not asked about.
    """

    template: str | None = None
    template_hash: str | None = None
    temperature: float | None = None
    per_call: str | None = None
    regime: str | None = None
    judge: str | None = None
    left_out: int = 0

    def as_dict(self) -> JsonObject:
        """Return the fields as a JSON object."""
        return asdict(self)


def protocol_of(raw: Mapping[str, Any]) -> Any:
    """Return the fields of ``ProtocolFacts``, gathered from several facts of ``Journal.facts``."""
    protocol = raw.get("protocol", {})
    if not isinstance(protocol, dict):
        return protocol
    space, settings = raw["space"], raw["settings"]
    oracle = settings.get("oracle")
    oracle = oracle if isinstance(oracle, dict) else {}
    judge = oracle.get("judge")  # anything but a dict is left for validation to refuse
    return {
        **protocol,
        "template_hash": settings.get("template"),
        "per_call": settings.get("answers"),
        "regime": oracle.get("regime"),
        "judge": judge.get("name") or judge.get("model") if isinstance(judge, dict) else judge,
        "left_out": space.get("left_out", 0),
    }


class SpaceFacts(Fact):
    """The question space; see ``QuestionSpace``.

    Attributes:
        fingerprint: Hash by which the space is recognised.
        dataset: Name of the dataset.
        samples: Number of source images.
        concepts: The C names of concepts.
        variants: The V pairs of a relation and a severity.
        size: Number of questions.
        cell_counts: (C, 2), the number of questions per concept and truth.
        seed: Seed of the follow-ups.
        concepts_are: What a concept is to its oracle; see ``OracleDefaults``.
        shown: Name of each source of pictures and truths -> a short hash of it.
    """

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
        """The relations, each once, in the order of the variants."""
        return list(dict.fromkeys(relation for relation, _ in self.variants))

    @property
    def numbering(self) -> Numbering:
        """The numbering of its questions."""
        return Numbering(len(self.variants), len(self.concepts))


class OracleFacts(Fact):
    """The oracle that judged answers.

    Attributes:
        name: Its registered name.
        rates: Names of the mean losses of a concept, each with the truth that it is about.
        needs_source: True if answers are compared with those about source images.
        regime: How replies in words are read, None if they are not.
        judge: Description of the judge model, None if there is none.
        metric: Metric of masks, None for other answers.
        tells_losses: True if the model's answer to a question is its loss.
    """

    name: str = ""
    rates: dict[str, int] = dict(SIDES)
    needs_source: bool = False
    regime: str | None = None
    judge: JsonObject | None = None
    metric: str | None = None
    tells_losses: bool = False


class SettingsFacts(Fact):
    """The audit's settings; see the arguments of ``Audit``.

    ``prices``: see ``engine.prices``; None if proposals ignore prices.
    """

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
    """Return the word for a target that reached these goals of an audit."""
    if at_most is None:
        return "certified"
    return "decided" if half_width is None else "certified and decided"


class VersusFacts(Fact):
    """The claim about a difference of two models; see ``certify.decisions``.

    Attributes:
        pivot: Rates in [0, 1] at which the models are alike, one for all targets or one each.
        scale: Factor from a rate to the difference of two models.
        margin: Differences below it are equivalent.
        at_least: Least difference that is to be decided, None if intervals are certified.
    """

    pivot: tuple[float, ...]
    scale: float
    margin: float
    at_least: float | None = None


class SliceFacts(Fact):
    """A group of questions that was discovered during the audit; see ``audit.slices``.

    Attributes:
        name: The group in words.
        proposers: Names of the proposers that suggested it.
        since: The draw, counted from 0, that its intervals start with.
        size: Number of its questions.
        seen: Its questions that were drawn before.
        masks: Which questions belong to it; see ``certify.targets``.
        where: The same as a filter, field -> values; None if no filter describes it.
        images: Number of its images that had been asked about when it was discovered.
        rate: Its failure rate then, each draw weighed by the inverse of its proposal.
        base: The failure rate of all questions then, weighed alike.
        least_lift: Lower bound of rate / base, corrected for the groups tried.
        tried: Number of groups that were examined.
    """

    name: str
    proposers: tuple[str, ...]
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
        """Its rate over that of all questions, when it was discovered."""
        return self.rate / self.base


@dataclass(frozen=True)
class Constant:
    """The constant answer with the least mean loss on a target's questions, and that ``rate``."""

    answer: str
    rate: float


class CertificateFacts(Fact):
    """The targets of an audit, their intended precision, and the guarantee of their intervals.

    Attributes:
        half_width: Half-width in (0, 1) that intervals shall reach, None if none.
        at_most: Rate that targets are decided against, None if none.
        aim: Half-width that bets aim at.
        aims: (draw, half-width) pairs: the aim from that draw on, if it changed
            (``certify.rules``).
        confidence: Probability in (0, 1) with which the guarantee holds.
        unanswered: Unanswered questions count as a "loss", or as 0 and as 1 ("both").
        targets: Name of each target.
        sizes: Number of questions of each target.
        ids: Identity of each target; see ``families``.
        subsets: Hash of the questions of all targets.
        constants: The best constant answer of each target, None if there is none.
        guarantee: Whether "all" intervals hold at once, or "each" one by itself.
        weights: Share of 1 - confidence of each target, None if they are equal.
        decided: How targets are decided against ``at_most``: by their intervals, by bets of
            their own (``certify.decisions``), or by counting all questions.
        bets: How bets are made.
        versus: The comparison of two models, None for an audit of one.
        set_aside: Share of 1 - confidence that is reserved for slices.
        slices: Slices that were discovered, the last of the targets.
        theta: Weight in (0, 1) of each target's bets on larger rates (``certify.sequences``),
            fixed before the first draw, slices excluded. Empty means 1/2.
        strata: Stratum of each variant, -1 for none, if the draws of another audit came first
            and the strata are its own.
    """

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
        """Number of targets when the audit began: all but the slices."""
        return len(self.sizes) - len(self.slices)

    def pivot(self, place: int) -> tuple[float, float] | None:
        """Return the rate at which two models are alike, and the scale of their difference.

        Args:
            place: Number of the target.

        Returns:
            Both, or None in an audit of one model.
        """
        versus = self.versus
        return None if versus is None else (versus.pivot[place % len(versus.pivot)], versus.scale)

    def constant(self, place: int) -> Constant | None:
        """Return the best constant answer of a target, None for slices and comparisons."""
        has_none = self.versus is not None or place >= len(self.constants)
        return None if has_none else self.constants[place]

    @property
    def since(self) -> tuple[int, ...]:
        """The draw that the bets of each target start with."""
        return (0,) * self.registered + tuple(s.since for s in self.slices)

    @property
    def counted(self) -> bool:
        """True if every question is asked, so that nothing is drawn and rates are exact."""
        return self.decided == "by counting"

    @property
    def promise(self) -> str:
        """The guarantee, in words."""
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
        article = "the" if count == 1 else "every" if self.guarantee == "all" else "each"
        decision = f"{article} decision against {self.at_most:g}"
        return f"{text}; {decision} is right with the same probability"

    @property
    def done(self) -> str:
        """The word for a target that reached its goals; see ``goal_reached``."""
        return goal_reached(self.half_width, self.at_most)

    @property
    def decides(self) -> bool:
        """True if targets are decided by separate bets, rather than by their intervals."""
        return self.decided == "by bets" and self.at_most is not None

    @property
    def paired(self) -> bool:
        """True if two models were asked, so that rates are those of pairs and not error rates."""
        return self.versus is not None and self.versus.scale > 0

    @property
    def drops(self) -> bool:
        """True if losses compare the answers about a changed image and its original."""
        return bool(self.ids) and self.ids[0].signed

    @property
    def both(self) -> bool:
        """True if an unanswered question counts as 0 in lower bounds and as 1 in upper ones."""
        return self.unanswered == "both"


class DiscoverFacts(Fact):
    """How slices are searched for: at most ``most``, by the proposers named in ``by``, and in
    addition to ``audit.slices.looking`` at the draws ``also``."""

    most: int
    by: tuple[str, ...]
    also: tuple[int, ...] = ()


class EndedFacts(Fact):
    """How the audit ended: the ``reason`` in words, its kind ``by``, and ``elapsed`` seconds."""

    reason: str | None = None
    elapsed: float = 0.0
    by: EndedBy = ""


class RejudgedFacts(Fact):
    """The answers that were judged again, from the journal in the file ``source`` while its head
    was ``head``. ``oracle`` judged them first; ``reading`` says how raw replies were read again,
    None if they were not."""

    source: str
    head: str
    oracle: str
    reading: str | None = None


class ReplayFacts(Fact):
    """The audit whose draws came first: its ``key``, their number, its journal's ``head``."""

    key: str
    draws: int
    head: str


class Facts(LostFacts):
    """All facts of a journal in which an audit was begun.

    Attributes:
        space: The question space.
        settings: The audit's settings.
        certificate: What is certified, None if nothing is.
        population: See ``certify.targets``.
        intervals: A row per target at the end, in the order of the certificate.
        ended: How the audit ended, None while it has not.
        key: The audit's key; see ``engine.audit_key``.
        goal: Half-width, limit and margin that the audit began with.
        entropy: Fresh random number that custom parts add to the key, None without them.
        model_version: Version of the model, None if unknown.
        model_changed: True if the model's version changed since.
        self_taught: The helper model that was trained, None if none was.
        self_taught_changed: True if it was trained again with another result.
        features: See ``engine.audit_key``.
        features_changed: True if the features of images changed since.
        stop: The stopping rules in words.
        stop_levels: Mean and maximal uncertainties, as shares of the prior, at which rules end
            the audit.
        max_cost: Cap on cost, None if there is none.
        currency: ISO 4217 code of the currency of all costs.
        endpoint: Counts of the model's client.
        warnings: What the user was warned of.
        spec: The content of SPEC.toml, None if the audit was begun from Python.
        base: Folder that the paths of SPEC.toml start at.
        named: Name of the SPEC's file, and the --set changes, or --demo, as typed.
        program: Hash of ``spec`` and ``base``.
        parts: See ``config.journaled.notes_of``.
        parts_failed: Kinds of parts that raised an error, whose code may be mended since.
        parts_changed: Fields of ``parts`` whose code was mended since.
        begun_with: Settings and certificate by name, as stored but without the targets' ids.
            They must be equal when the audit is resumed.
        known_a: Questions that an earlier audit had asked model A of a comparison.
        discover: How slices are searched for, None if they are not.
        replay: The audit whose draws came first, None if all draws are its own.
        begun_by: The command that began it, or that continues the labels of a CSV of items.
        call: Python's arguments; see ``audit.one_line.called_again``.
        files: Files of the two models of a comparison, if they distinguish them.
        batches: Submitted batches that were awaited when last written, and lost ones.
        ways: How P(yes) is elicited: by "a" and "b" for two models, else by "".
        bounds: Most tokens, sent and received, of an attempt that was counted at more than
            expected; by the keys of ``ways`` and "judge".
        trial_calls: Calls of a free model before the first draw, which timed it and checked the
            order of its columns.
        rejudged: The answers that were judged again, None if the model was asked.
        cohort: Other models whose answers were known.
        protocol: How the model was asked.
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
    parts_failed: tuple[str, ...] = ()
    parts_changed: tuple[str, ...] = ()
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
        """Return a cost as text, in the audit's currency."""
        return money(cost, self.currency)

    def money_in_doubt(self, unconfirmed: float) -> list[str]:
        """Return what is uncertain about the cost, as parts of a sentence.

        Args:
            unconfirmed: The part of the cost that no server confirmed.
        """
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
        """Number of calls about follow-ups that would ask everything."""
        if self.settings.answers == "one":
            return self.space.size
        return self.space.samples * len(self.space.variants)

    def refuse_pairs(self, what: str, remedy: str) -> None:
        """Raise InputError if two models were asked, for which ``what`` has no meaning."""
        certificate = self.certificate
        if certificate is not None and (certificate.paired or certificate.drops):
            got = "a comparison of two" if certificate.paired else "one of drops, not of rates"
            raise InputError(f"{what}: expected an audit of one model, got {got}; {remedy}")

    @property
    def least_failing(self) -> float:
        """The least loss of a failure. Drops above 0.5 got worse, and 0.5 is no change."""
        drops = self.certificate is not None and self.certificate.drops
        return math.nextafter(0.5, 1) if drops else 0.5

    def key_of(self, draw: int) -> str:
        """Return the key that the random choice of a draw follows from."""
        return self.replay.key if self.replay and draw < self.replay.draws else self.key


def read_facts(raw: Mapping[str, Any]) -> Facts:
    """Return the checked facts of an audit.

    Args:
        raw: The facts as ``Journal.facts`` returns them.

    Raises:
        JournalError: No audit was begun, or a fact has another form than expected.
    """
    if "space" not in raw or "settings" not in raw:
        raise JournalError("journal: no audit was begun in it")
    joined = dict(raw)  # with fields that are read from several facts
    settings, certificate = raw["settings"], raw.get("certificate")
    if isinstance(raw["space"], dict) and isinstance(settings, dict):
        joined["begun_with"] = {**settings, "certificate": without_ids(certificate)}
        joined["certificate"] = _with_slices(certificate, raw.get("slices"))
        joined["protocol"] = protocol_of(raw)
    return _read(Facts, joined)


def begun_facts(raw: Mapping[str, Any]) -> Facts | None:
    """Return the checked facts, or None if no audit was begun."""
    return read_facts(raw) if is_begun(raw) else None


def read_lost(raw: Mapping[str, Any]) -> LostFacts:
    """Return the lost calls of a journal, or of the ones that a new journal follows.

    Raises:
        JournalError: A fact has another form than expected.
    """
    return _read(LostFacts, raw)


def is_begun(raw: Mapping[str, Any]) -> bool:
    """Return whether these are the facts of an audit that was begun."""
    return "space" in raw


def _read(kind: type[AnyFact], raw: Mapping[str, Any]) -> AnyFact:
    """Return validated facts; raise JournalError that names the first damaged one."""
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


def _with_slices(certificate: Any, slices: Any) -> Any:
    """Return a certificate with the slices that were discovered since as its last targets."""
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
    """Return a certificate without its targets' ids, which follow from their names.

    Anything that is no dict is returned unchanged, for validation to refuse.
    """
    if not isinstance(certificate, dict):
        return certificate
    return {name: value for name, value in certificate.items() if name != "ids"}
