"""Two models compared: both are asked the same drawn questions, and the difference is certified.

Whatever certifies the rate of one model certifies that of pairs (``oracles.paired``), so a
comparison is an audit of both as one: its journal, draws, intervals and ``verify`` are those of any
audit. Where model A's loss is known for every question, model B is audited alone, with A's
losses as a proxy, against A's exact rates.

Every interval of a difference holds at every moment, all together (or each by itself, as
``guarantee`` says), so each decision may be read off at any time.
"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, Unpack

import numpy as np
import pandas as pd

from .audit import Audit
from .audit.progress import Hooks
from .certify.compared import calls_of
from .certify.comparison import Comparison
from .certify.plan import Certify
from .certify.targets import named_targets
from .engine.audit_key import version_of
from .engine.census import all_losses, means, unanswered
from .engine.earlier_answers import Earlier, answered_keys, earlier_answers
from .engine.options import Shorthands, grouped
from .errors import InputError, unknown
from .journal import Journal, SQLiteJournal, read_journal
from .journal.facts import is_begun, read_facts
from .journal.halves import HalfStore, KnownAnswers
from .models import Recorded
from .models.base import ModelSource, ModelUnderTest, adapted_model
from .models.local.anything import model_of
from .models.pair import Halves, Pair, pair
from .oracles.paired import Paired
from .results import Result
from .space import QuestionSpace
from .stopping import FirstOf, StoppingRule
from .surrogates import Named
from .surrogates.difference_gp import DifferenceGP
from .types import Floats, Indices

Use = Literal["condition", "proxy"]
"""What is made of an earlier audit of model A: its answers stand as they are, or they are hints."""


@dataclass(frozen=True)
class Verdict:
    """How a comparison stands.

    ``targets``: one row each, with the columns of ``certify.compared.Compared``. ``calls_a`` and
    ``calls_b``: answered calls of each model. ``result``: the audit's own, whose rates are
    y = (1 + delta) / 2, or B's.
    """

    targets: pd.DataFrame
    calls_a: int
    calls_b: int
    result: Result

    @property
    def decided(self) -> bool:
        """Whether every target is."""
        return bool((self.targets["decision"] != "open").all())


class Versus:
    """Compares models ``a`` and ``b`` over one space.

    - ``a``, ``b``: the old model and the new one, or what one is made of, as ``Audit`` takes it.
    - ``margin``: in [0, 1), a difference of error rates that does not matter; targets whose whole
      interval lies within +- it are decided, too. Default 0: two models that are alike never part,
      so a limit (``budget``, ``max_cost`` ...) is needed.
    - ``until``: a StoppingRule that ends it in place of the decisions, such as a gate's
      (``gate.Gated``); limits end it, too. Default None: it ends once all targets are decided.
    - ``at_least``: in (-1, 1), a claim that is decided in place of all that: that R_A - R_B is this
      or more; -0.02: B errs more often by 0.02 at most. "holds" or "fails", each at full alpha, so
      sooner than by intervals. Default None: no claim.
    - ``recorded_a``: answers of model A to every question, as ``models.Recorded`` takes them; then
      ``a`` is None, and only B is asked and paid for. Default None: A is asked.
    - ``journal_a``: the journal of an earlier audit of ``a`` on this space. Default None: none.
    - ``use``: what is made of it. "condition": what A said there is taken as it is, free, and only
      what is missing is asked; the models, the oracle and the space have to be the same. "proxy":
      hints alone, for an earlier version of A. Default "condition".
    - ``targets``, ``confidence``, ``guarantee``, ``where``, ``weights``, ``strategy``, ``seed``,
      ``budget``, ``max_cost`` and all other options: as ``Audit`` takes them, but for
      ``half_width`` and ``at_most``. ``budget`` counts the calls of both models. ``targets`` is
      "overall" by default.

    Raises InputError for options that are out of range or do not fit.
    """

    def __init__(
        self,
        space: QuestionSpace,
        a: "ModelSource | None",
        b: ModelSource,
        *,
        margin: float = 0.0,
        until: StoppingRule | None = None,
        at_least: float | None = None,
        recorded_a: pd.DataFrame | None = None,
        journal_a: Path | str | None = None,
        use: Use = "condition",
        journal: Path | str | None = None,
        notes: Mapping[str, Any] | None = None,
        device: str = "auto",
        **options: Unpack[Shorthands],
    ) -> None:
        options.setdefault("targets", ("overall",))
        certify, self.sampling, self.limits = grouped(options, None, None, None)
        if until is not None:
            both = (until,) if self.limits.stop is None else (until, self.limits.stop)
            self.limits = replace(self.limits, stop=FirstOf(both))
        self.space, self.margin, self._stops = space, margin, until is None
        self.at_least = at_least
        self._check(certify, a, recorded_a, journal_a, use)
        self._store: HalfStore | None = None
        begin = partial(Audit, sampling=self.sampling, journal=journal, device=device)
        new = model_of(b)
        if recorded_a is not None:
            self.audit = self._against(recorded_a, new, certify, partial(begin, notes=notes))
        elif a is not None:
            old = model_of(a)
            self.audit = self._together(old, new, certify, journal_a, use, journal, notes, begin)

    def _check(self, certify: Certify, a: Any, recorded_a: Any, journal_a: Any, use: str) -> None:
        if not 0 <= self.margin < 1:
            raise InputError(f"margin: expected a number from 0 to below 1, got {self.margin}")
        if self.at_least is not None and not -1 < self.at_least < 1:
            raise InputError(
                f"at_least: expected a difference of rates between -1 and 1, got {self.at_least}"
            )
        if self.at_least is not None and self.margin:
            raise InputError(
                f"versus: expected margin or at_least, got both ({self.margin:g} and "
                f"{self.at_least:g}); a claim has its margin in itself"
            )
        if certify.half_width is not None or certify.at_most is not None:
            raise InputError(
                "versus: expected a margin, got half_width or at_most; those are about one model"
            )
        if (a is None) == (recorded_a is None):
            raise InputError(
                "versus: expected model a or its recorded answers (recorded_a), got "
                + ("neither" if a is None else "both")
            )
        if use not in ("condition", "proxy"):
            raise unknown("use", use, ("condition", "proxy"), "journal_a")
        if journal_a is not None and recorded_a is not None:
            raise InputError("versus: expected recorded_a or journal_a, got both")
        if self.margin == 0 and self.at_least is None and not self.limits.rules(None):
            raise InputError(
                "versus: expected a margin above 0, at_least or a limit (budget, max_cost or "
                "stop), got none; models that are exactly alike would be asked every question "
                "there is"
            )

    # -- model A is asked, too -----------------------------------------------------------

    def _together(
        self,
        a: ModelUnderTest,
        b: ModelUnderTest,
        certify: Certify,
        journal_a: Path | str | None,
        use: Use,
        journal: Path | str | None,
        notes: Mapping[str, Any] | None,
        begin: "partial[Audit]",
    ) -> Audit:
        earlier = None
        if journal_a is not None and use == "condition":
            with closing(read_journal(journal_a)) as journal_of_a:
                earlier = earlier_answers(self.space, a, journal_of_a, str(journal_a))
        oracle = Paired(self.space.oracle, None if earlier is None else earlier.questions)
        space = self.space.judged_by(oracle)
        halves = self._halves(pair(a, b), journal, earlier)
        budget = self.limits.budget
        known = [] if earlier is None else earlier.questions.tolist()
        return begin(
            space,
            pair(a, b, halves),
            notes={**(notes or {}), "known_a": known},
            limits=replace(self.limits, budget=budget and max(1, budget // 2)),
            certify=replace(
                certify,
                compare=Comparison(margin=self.margin, stops=self._stops, at_least=self.at_least),
                surrogate=_surrogate(certify, space, earlier),
                prior_journal=journal_a if use == "proxy" else None,
            ),
        )

    def _halves(
        self, both: Pair, journal: Path | str | None, earlier: Earlier | None
    ) -> Halves | None:
        """What either model is known to have said: earlier, or when a pair was interrupted."""
        if journal is not None:
            path = Path(journal)
            about = f"{self.space.fingerprint} {both.name} {version_of(both)} {both.template_hash}"
            answered = _answered(self.space, path)
            self._store = HalfStore(path.with_name(f"{path.name}.halves"), about, answered)
        return self._store if earlier is None else KnownAnswers(earlier.answers, self._store)

    # -- model A is known ----------------------------------------------------------------

    def _against(
        self,
        recorded: pd.DataFrame,
        b: ModelUnderTest,
        certify: Certify,
        begin: "partial[Audit]",
    ) -> Audit:
        space = self.space
        if space.oracle.needs_source:
            raise InputError(
                "recorded_a: expected an oracle that needs no source image's answer, got "
                f"{type(space.oracle.original).__name__}; give model a itself"
            )
        known = Recorded(recorded, per_call=adapted_model(b).answers, name="a")
        if certify.unanswered == "both" and (missing := unanswered(space, known)):
            raise InputError(
                f"recorded_a: expected an answer to every question where unanswered = 'both', as "
                f"A's rates must be known exactly; got none to {missing} of {space.size}: record "
                "them, or take unanswered = 'loss'"
            )
        questions, losses = all_losses(space, known)
        rates = means(
            space, named_targets(space, certify.targets, certify.where), questions, losses
        )
        proxies = {**(certify.proxies or {}), "a": _as_answers(space, questions, losses)}
        return begin(
            space,
            b,
            limits=self.limits,
            certify=replace(
                certify,
                compare=Comparison(
                    tuple(rates.tolist()), -1.0, self.margin, self._stops, self.at_least
                ),
                proxies=proxies,
            ),
        )

    # -- running -------------------------------------------------------------------------

    def run(self, on_progress: Hooks = None, *, progress: Hooks = None) -> Verdict:
        """Asks until every difference is decided, or a limit is met; see ``Audit.run``."""
        self.audit.run(on_progress, progress=progress)
        return self.verdict()

    def verdict(self) -> Verdict:
        """What is known now."""
        return verdict_of(self.audit.result(), self.audit.journal)

    def close(self) -> None:
        """Releases the files."""
        self.audit.close()
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def verdict_of(result: Result, journal: Journal) -> Verdict:
    """How the comparison in a journal stands, ``result`` being what it comes to."""
    facts = read_facts(journal.facts())
    rows = pd.DataFrame([asdict(row) for row in result.versus])
    calls, draws = journal.calls(), journal.draws(laws=False)
    made = calls_of(facts.certificate, draws, calls, len(journal.sources()), facts.known_a)
    return Verdict(rows.astype({"disagreement": float}), *made, result)


def _surrogate(certify: Certify, space: QuestionSpace, earlier: Earlier | None) -> bool | Named:
    """Two question GPs, unless predictions are switched off."""
    if certify.surrogate is False:
        return False
    if certify.surrogate is not True:
        raise InputError(
            f"surrogate: expected True or False in a comparison, got {certify.surrogate!r}"
        )
    known = None if earlier is None else partial(_known_losses, space, earlier)
    return Named("difference-gp", partial(DifferenceGP, known=known))


def _known_losses(
    space: QuestionSpace, earlier: Earlier, sample: Indices, variant: Indices, concept: Indices
) -> Floats:
    """(n,): A's losses where an earlier audit found them, else NaN."""
    return earlier.losses_of(space.number(sample, variant, concept))


def _answered(space: QuestionSpace, path: Path) -> set[str]:
    """Keys of the prompts whose pairs a journal holds."""
    if not path.is_file():
        return set()
    with closing(SQLiteJournal(path, read_only=True)) as journal:
        return answered_keys(space, journal) if is_begun(journal.facts()) else set()


def _as_answers(space: QuestionSpace, questions: Indices, losses: Floats) -> Floats:
    """Samples x variants x concepts of P(yes) that lose what was lost, else .5."""
    values = np.full(space.total, 0.5)
    values[questions] = np.nan_to_num(np.abs(losses - space.truth(questions)), nan=0.5)
    return values.reshape(len(space.dataset), len(space.variants), len(space.concepts))
