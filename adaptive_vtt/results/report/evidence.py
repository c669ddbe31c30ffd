"""The content of a journal and what follows from it, worked out once for all sections of the page.

Rows, answers in words, wrong calls, the answer GPs that the answers teach, and the standing of
every target.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from shlex import quote
from string import ascii_uppercase
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from ...certify.further import Range, further, longest
from ...certify.status import TargetStatus
from ...certify.tracks import members_of
from ...certify.verify_draws import Membership
from ...families import in_short
from ...journal import Journal, SQLiteJournal
from ...journal.files import JOURNAL
from ...journal.rows import AnswerRow
from ...oracles.base import LABEL_ERROR
from ...oracles.choice import ASKED
from ...types import IDENTITY, SIDES, Floats, JsonObject
from ...utils.figures import in_points, on_page
from ..advice import spec_named
from ..cautions import cautions
from ..derived import Bounds
from ..outcomes import counting, sample_word, unanswered
from ..run import Run
from .run_files import baselines, realism_of
from .section import THIN, Section, capital, fragment

LONGEST = 400
"""Characters of a question that are shown, at most."""
QUOTED, BRIEF = 160, 80
"""Characters of a reply that a card, and a row of a table, shows at most."""
NO_REASON = "no reason was given"


def question_in_words(row: AnswerRow) -> JsonObject | None:
    """Return ``question``, ``options`` (letter, text, whether it is right) and, where there are
    none, the ``right`` answer; None if the journal keeps no question in words."""
    asked = (row.details or {}).get(ASKED)
    if not isinstance(asked, Mapping):
        return None

    def cut(text: str) -> str:
        return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."

    right: Sequence[str] = [str(text) for text in asked.get("right", ())]
    lettered = zip(ascii_uppercase, asked.get("options", ()), strict=False)
    options = [[letter, cut(str(text)), letter in right] for letter, text in lettered]
    return {
        "question": cut(str(asked.get("question", ""))),
        "options": options,
        "right": "" if options else cut(", ".join(right)),
    }


CHECKPOINTS = 200
"""Moments at which the uncertainty of the answer GPs is measured, at most."""
MOST = 1_000
"""Failing calls that are listed where everything was asked, at most."""
BLOCK = 4_096
"""Calls whose targets are looked up at once."""


RATES = {
    "miss rate": "Miss rate: error where the concept is present",
    "false-alarm rate": "False-alarm rate: error where the concept is absent",
    "EFR": "Error finding rate (EFR) per concept",
    "error rate": "Error rate per concept",
    "violation rate": "Violation rate per concept",
    "mean distance": "Mean distance between grades, by true grade",
}
"""Rates of a concept, and their headings."""
KINDS = {
    "overall": "All questions",
    "relation": "Error rate per relation",
    "severity": "Error rate per relation and severity",
    **RATES,
    **dict.fromkeys(
        ("relation, error", f"relation, {LABEL_ERROR}"), "Error rate per relation and concept"
    ),
    **{f"relation, {rate}": f"{capital(rate)} per relation" for rate in RATES},
    "slice": "Slices, noticed by the audit itself",
    "other": "Other targets",
}
"""Kinds of targets in the order of the page."""

Counts = npt.NDArray[np.int64]


class Failure(NamedTuple):
    """A call with a wrong answer.

    Attributes:
        mistakes: Wrong and missing answers, the surest first.
        right: Number of other answers.
        pictures: PNGs of the source and the follow-up image, None if none were kept.
        targets: Places of the targets that its wrong answers belong to.
    """

    call: int
    sample: str
    change: str
    pictures: tuple[bytes, bytes] | None
    mistakes: list[AnswerRow]
    right: int
    targets: frozenset[int]


@dataclass(frozen=True)
class Replay:
    """The answer GPs at T checkpoints.

    Attributes:
        calls, questions: Numbers so far (T,).
        uncertainty: Uncertainty relative to the prior (T x C x 2); NaN on a side without questions
            left to ask.
        mean, deviation, counts: Predictions and numbers of answers at the end (C x bins).
    """

    calls: Counts
    questions: Counts
    uncertainty: Floats
    grid: Floats
    mean: Floats
    deviation: Floats
    counts: Counts


@dataclass(frozen=True, kw_only=True)
class Standing(TargetStatus):
    """A target's status on a page.

    Attributes:
        place: Its place in the certificate.
        kind: A key of KINDS.
        label: Its name within its kind.
        settled: Whether it reached all its goals.
        settled_at: Number of drawn calls that this took, None if it has not.
    """

    place: int
    kind: str
    label: str
    settled: bool
    settled_at: int | None

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.estimate, self.lower, self.upper)


class Evidence:
    """A journal's rows, with what the sections of the page make of them.

    Args:
        source: The journal of an audit, or its run.
        folder: The folder with baselines and people's judgements, None for none.

    Attributes:
        table: Outcomes, one row per judged question; ``counted`` lacks excluded ones.
        folder: What commands call the run, quoted; ``spec``: what they call its SPEC.toml.
        sample: What a sample is called, "image" or "item".
        by_people: Whether losses of items were entered, in place of a model's answers.
        number: What a number that the model answers is.
        of_concepts: Whether every question names a concept; captions are of the whole image.
        in_words: Whether models answer in words, which have no P(yes) and no sides.
        sided: Whether a concept is present or absent, with an error rate for each.
        adaptive: Whether earlier answers influenced what was asked.
        cost: Cost of all answers; ``unconfirmed``: the part that may not have been charged.
        elapsed: Seconds until the last row of the journal.

    Raises:
        JournalError: No audit was begun.
    """

    def __init__(self, source: Journal | Run, folder: Path | None = None) -> None:
        self.run = run = Run.of(source)
        self.facts = facts = run.facts
        self.settings, self.certificate, self.space = facts.settings, facts.certificate, facts.space
        self.concepts, self.variants = list(facts.space.concepts), list(facts.space.variants)
        self.relations = facts.space.relations
        self.draws, self.calls, self.sources = run.draws, run.calls, run.sources
        self.pictures, self.head, self.table = run.pictures, run.head, run.table
        self.cost, self.unconfirmed = run.cost, run.unconfirmed
        self.folder, self.spec = _folder(run.journal), spec_named(facts)
        self.baselines = {} if folder is None else baselines(folder)
        self.realism = None if folder is None else realism_of(folder, facts)
        rates, rows = facts.settings.oracle.rates, [a for call in self.calls for a in call.answers]
        self.by_people = facts.settings.oracle.tells_losses
        self.number = (
            "" if self.by_people else "score" if facts.settings.oracle.metric else "P(yes)"
        )
        self.of_concepts = not any("objects" in (row.details or {}) for row in rows)
        self.in_words = not self.of_concepts or any(row.answer_text is not None for row in rows)
        self.sided = not self.in_words and set(rates) == set(SIDES)
        self.sample = sample_word(facts.space, self.pictures)
        self.drawn = {row.call: row for row in self.draws}
        self.call_of = {row.call: row for row in self.calls}
        self.answered = {row.question: row for row in rows}
        self.counted = counting(self.table)
        self.adaptive = facts.settings.strategy != "random"
        self.rules = [on_page(in_points(rule)) for rule in facts.stop]
        reason = (facts.ended.reason if facts.ended else None) or "no reason was given"
        self.reason = on_page(in_points(reason))
        every: tuple[Sequence[Any], ...] = (self.draws, self.calls, self.sources)
        times = [row.elapsed for part in every for row in part]
        self.elapsed = max([*times, facts.ended.elapsed if facts.ended else 0.0])

    def section(
        self, title: str, id: str, template: str = "", late: Markup | str = "", **values: Any
    ) -> Section:
        """Return the section that a template makes of ``values`` and the evidence's attributes.

        The template is by default the one named as the section's ``id``.
        """
        context = {**vars(self), "evidence": self, **values}
        return Section(title, id, fragment(template or f"{id}.html", **context), late)

    @cached_property
    def warnings(self) -> list[str]:
        """The cautions, without full stops."""
        return [warning.rstrip(".") for warning in cautions(self.run)]

    @cached_property
    def silent(self) -> Counter[str]:
        """The number of questions without an answer, by reason."""
        return unanswered(self.calls)[1]

    # -- questions and calls -----------------------------------------------------------------------

    def asked(self, question: int) -> tuple[str, str, int]:
        """Return concept, relation and severity of the question of this number."""
        _, variant, concept = self.space.numbering.parts(question)
        return self.concepts[concept], *self.variants[variant]

    def change(self, relation: str, severity: int) -> str:
        """Return relation and severity as one name; the severity only where there is a choice."""
        alone = sum(name == relation for name, _ in self.variants) == 1
        return relation if alone else f"{relation} {severity}"

    def question(self, number: int, sample: str) -> tuple[str, str, str]:
        """Return a question in words: what stands before, in and after bold type."""
        concept, relation, severity = self.asked(number)
        change = "" if relation == IDENTITY else f" after {self.change(relation, severity)}"
        answer = self.answered.get(number)
        if not self.of_concepts:
            return "", "", f"{sample}{change}"
        if answer is not None and (words := question_in_words(answer)) is not None:
            return f"“{' · '.join(words['question'].splitlines())}” of {sample}{change}", "", ""
        return "Is ", concept, f" present in {sample}{change}?"

    def verdict(self, question: int) -> tuple[str, str]:
        """Return the verdict on the answer to a question in a word, and its reason."""
        answer = self.answered.get(question)
        if answer is None:
            return "waiting", "no answer yet"
        if answer.answer is None:
            return "unanswered", answer.unanswered or NO_REASON
        if answer.loss is None:
            return "unknown", "not judged"
        verdict = "right" if answer.loss < 0.5 else "wrong"
        if answer.answer_text is not None:
            return verdict, answer.answer_text[:BRIEF]
        if verdict == "right":
            return verdict, "present" if answer.truth else "absent"
        return verdict, "missed: it is present" if answer.truth else "false alarm: it is absent"

    def line(self, answer: AnswerRow) -> JsonObject:
        """Return what a card shows of a wrong answer about a concept."""
        place, number = answer.question % len(self.concepts), None
        if answer.answer_text is not None:
            text = f"“{answer.answer_text[:QUOTED]}”"
            text += f": {answer.unanswered}" if answer.unanswered else ""
        elif answer.answer is None:
            text = f"no answer: {answer.unanswered or NO_REASON}"
        else:
            text, number = self.shown(answer.answer), answer.answer
        return {
            "key": place,
            "truth": (answer.truth or 0) if self.sided else None,
            "name": "loss" if self.by_people else self.concepts[place],
            "is": f"is {'present' if answer.truth else 'absent'}" if self.sided else "",
            "text": text,
            "at": number,
            "asked": question_in_words(answer),
        }

    def shown(self, number: float) -> str:
        """Return an answer that is a number in words."""
        return f"{self.number} {100 * number:.0f}{THIN}%".lstrip()

    def of_model(self, details: Mapping[str, Any]) -> str:
        """Return the answer of one of two models, and its loss."""
        reply, loss = details.get("answer"), float(details.get("loss", 0))
        lost = {0.0: "right", 1.0: "wrong"}.get(loss, f"lost {loss:.2f}")
        if isinstance(reply, dict):
            words = f"no answer ({reply['unanswered']})" if "unanswered" in reply else "an answer"
        elif isinstance(reply, int | float):
            words = self.shown(reply)
        else:
            words = f"“{str(reply)[:QUOTED]}”"
        return f"{words}, {lost}"

    def targets_of(self, asked: Mapping[int, Sequence[int]]) -> dict[int, frozenset[int]]:
        """Return by call the places of the targets to which any of its questions belongs."""
        certificate, population = self.certificate, self.facts.population
        places: dict[int, frozenset[int]] = dict.fromkeys(asked, frozenset())
        if certificate is not None and not certificate.counted:
            for call, numbers in asked.items():
                held = enumerate(members_of(certificate, self.drawn[call], numbers))
                places[call] = frozenset(k for k, mine in held if not {*numbers}.isdisjoint(mine))
        elif certificate is not None and population is not None:  # as draws name no targets
            targets, calls = Membership(population, population["targets"]), [*asked]
            for start in range(0, len(calls), BLOCK):
                part = calls[start : start + BLOCK]
                inside = targets.inside(np.concatenate([asked[call] for call in part]))
                starts = np.cumsum([0, *(len(asked[call]) for call in part)])[:-1]
                for call, row in zip(part, np.logical_or.reduceat(inside, starts), strict=True):
                    places[call] = frozenset(np.flatnonzero(row).tolist())
        return places

    @cached_property
    def wrong(self) -> dict[int, list[AnswerRow]]:
        """Wrong and missing answers of each call that has any, the surest mistakes first."""
        least = self.facts.least_failing
        wrong = {c.call: [a for a in c.answers if (a.loss or 0.0) >= least] for c in self.calls}
        return {c: sorted(rows, key=lambda a: -_distance(a)) for c, rows in wrong.items() if rows}

    @cached_property
    def failing(self) -> Counter[int]:
        """The number of calls with a wrong answer, by the place of a target."""
        return Counter(chain.from_iterable(self._targets.values()))

    @cached_property
    def _targets(self) -> dict[int, frozenset[int]]:
        return self.targets_of({c: [a.question for a in rows] for c, rows in self.wrong.items()})

    @cached_property
    def failures(self) -> list[Failure]:
        """Calls with a wrong answer: those with pictures first, then the surest mistakes.

        If everything was asked, there are MOST of them at most.
        """
        surest = sorted(self.wrong, key=lambda call: -_distance(self.wrong[call][0]))
        surest.sort(key=lambda call: call not in self.pictures)
        counted = self.certificate is not None and self.certificate.counted
        return list(map(self._failure, surest[:MOST] if counted else surest))

    def _failure(self, call: int) -> Failure:
        wrong, answers, drawn = self.wrong[call], self.call_of[call].answers, self.drawn[call]
        right = sum(a.loss is not None and not a.excluded for a in answers) - len(wrong)
        change, pictures = self.change(*self.asked(drawn.question)[1:]), self.pictures.get(call)
        return Failure(call, drawn.sample, change, pictures, wrong, right, self._targets[call])

    # -- the answer GPs ----------------------------------------------------------------------------

    @cached_property
    def replay(self) -> Replay:
        """The answer GPs, learnt again from the first answer to the last."""
        import torch

        from ...surrogates import AnswerGP, AnswerPoints

        gp = AnswerGP(len(self.concepts), form=self.settings.form, device="cpu")
        # calls answered, and questions judged by then, at each checkpoint; 0 and all included
        draws = np.sort([self.drawn[c.call].draw for c in self.calls]).astype(np.int64)
        judged_by = np.searchsorted(self.table["draw"].to_numpy(np.int64), draws, side="right")
        calls = np.unique(np.linspace(0, len(draws), CHECKPOINTS).round().astype(np.int64))
        questions = np.concatenate([[0], judged_by])[calls].astype(np.int64)
        places = {name: place for place, name in enumerate(self.concepts)}
        concepts = np.asarray(self.table["concept"].map(places), dtype=np.int64)
        truths = np.asarray(self.table["truth"], dtype=np.int64)
        coordinates = np.asarray(self.table["coordinate"], dtype=np.float64)
        left, uncertainty = np.array(self.space.cell_counts, dtype=np.int64), []
        for start, end in pairwise([0, *questions.tolist()]):
            part = np.arange(start, end)
            np.subtract.at(left, (concepts[part], truths[part]), 1)
            part = part[~np.isnan(coordinates[part])]
            gp.observe(AnswerPoints(*map(torch.from_numpy, (concepts[part], coordinates[part]))))
            relative = gp.uncertainty().numpy() / gp.prior_uncertainty
            uncertainty.append(np.where(left > 0, relative, np.nan))
        mean, deviation = gp.mean().numpy(), gp.variance().sqrt().numpy()
        counts = gp.counts.numpy().astype(np.int64)
        grid = gp.grid.numpy()
        return Replay(calls, questions, np.stack(uncertainty), grid, mean, deviation, counts)

    # -- targets -----------------------------------------------------------------------------------

    @property
    def widest(self) -> Floats:
        """The largest half-width after each draw (T + 1,), abandoned targets left out."""
        history = self.run.history
        kept = [track for track in history if not track.emptied] or history
        return np.asarray(np.max([track.half_width for track in kept], axis=0))

    def calls_to(self, width: float) -> Range | None:
        """Return the number of calls at which every interval is within +-``width``.

        It is a forecast if they are not yet. None if nothing is certified or can be forecast.
        """
        game, made = self.run.played[0], len(self.widest) - 1
        if game is None:
            return None
        if self.widest[-1] <= width:
            first = int(np.argmax(self.widest <= width))
            return Range(first, first, first)
        left = self.facts.all_calls - made
        more = longest(further(game, left, width)) if left > 0 else None
        return None if more is None else more.after(made)

    @cached_property
    def standings(self) -> list[Standing]:
        """The standing of every target, in the order of the certificate; [] without one."""
        return [self._standing(place) for place in range(len(self.run.statuses))]

    def _standing(self, place: int) -> Standing:
        status, track = self.run.statuses[place], self.run.history[place]
        certificate = self.certificate
        assert certificate is not None
        width, limit, decided = certificate.half_width, certificate.at_most, status.decided
        reached = np.ones(len(track.lower), bool) if width is None else track.half_width <= width
        if certificate.decides:
            reached = reached & (track.decided != 0)
        elif limit is not None:
            reached = reached & ((track.lower > limit) | (track.upper <= limit))
            sides = {"above": status.lower > limit, "below": status.upper <= limit, "open": True}
            decided = next(side for side, holds in sides.items() if holds)
        settled = (width is None or status.certified) and decided != "open" and not status.emptied
        if certificate.counted:
            settled = status.certified
        moment = int(reached.argmax()) if reached.any() else len(reached) - 1
        known = status.id.heading in KINDS
        changed = {
            "decided": decided,
            "drawn": status.estimate if status.drawn is None else status.drawn,
            "questions": int(track.questions[-1]),
        }
        return Standing(
            **{**vars(status), **changed},
            place=place,
            kind=status.id.heading if known else "other",
            label=in_short(status.id, self.variants) if known else status.name,
            settled=settled,
            settled_at=moment if settled else None,
        )


def ordered(standings: Sequence[Standing]) -> list[tuple[str, list[Standing]]]:
    """Return targets by kind, the highest estimate first."""
    groups = [(title, [s for s in standings if s.kind == kind]) for kind, title in KINDS.items()]
    return [(t, sorted(part, key=lambda s: -s.estimate)) for t, part in groups if part]


def _distance(row: AnswerRow) -> float:
    """Return how far the answer lies from the truth; an unanswered question comes last."""
    return -1.0 if row.answer is None else abs(row.answer - (row.truth or 0))


def _folder(journal: Journal) -> str:
    """Return the folder of a run, relative to the working directory.

    It is "DIR" elsewhere and without a run, as a page that is passed on must name no path of this
    machine.
    """
    if not isinstance(journal, SQLiteJournal) or journal.path.name != JOURNAL:
        return "DIR"
    folder, here = journal.path.parent, Path.cwd()
    if folder.is_relative_to(here):
        folder = folder.relative_to(here)
    return "DIR" if folder.is_absolute() else quote(str(folder))
