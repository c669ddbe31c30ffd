"""What the journal says, read once: its rows, what went wrong among them, questions in words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote
from string import ascii_uppercase

import numpy as np
import pandas as pd

from ...certify.further import Range, further, longest
from ...certify.tracks import members_of
from ...certify.verify_draws import Membership
from ...journal import Journal, SQLiteJournal
from ...journal.facts import SettingsFacts
from ...journal.files import JOURNAL
from ...journal.rows import EXCLUDED, AnswerRow, CallRow, DrawRow
from ...oracles.choice import ASKED
from ...types import IDENTITY, SIDES, Floats, JsonObject
from ...utils.figures import in_points, on_page
from ..advice import cap_held_back, spec_named
from ..cautions import cautions
from ..outcomes import FAILED, sample_word
from ..run import Run
from .beside_journal import Baseline, Realism


@dataclass(frozen=True)
class Asked:
    """A question in words, as far as its number tells."""

    concept: str
    relation: str
    severity: int


class Content(Run):
    """A run, in the words of a page.

    Attributes:
        baselines: What random draws took, as files beside the journal say.
        realism: What people said of its pictures, likewise.
    """

    baselines: tuple[Baseline, ...] = ()
    realism: Realism | None = None

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What to know before trusting the rest, a sentence each."""
        return tuple(cautions(self))

    @cached_property
    def folder(self) -> str:
        """The run folder as commands name it, quoted."""
        return _folder(self.journal)

    @cached_property
    def spec(self) -> str:
        """Its spec, likewise."""
        return spec_named(self.facts)

    @cached_property
    def held_back(self) -> str:
        """What ``advice.cap_held_back`` says of an audit that has not ended."""
        return "" if self.facts.ended else cap_held_back(self.facts, self.journal)

    @property
    def concepts(self) -> list[str]:
        return list(self.facts.space.concepts)

    @property
    def variants(self) -> list[tuple[str, int]]:
        """Relation and severity, in the order of their numbers."""
        return list(self.facts.space.variants)

    @cached_property
    def relations(self) -> list[str]:
        return self.facts.space.relations

    @property
    def settings(self) -> SettingsFacts:
        return self.facts.settings

    @cached_property
    def sample_word(self) -> str:
        """What a sample is called on the page, "image" or "item"."""
        return sample_word(self.facts.space, self.pictures)

    @property
    def rules(self) -> list[str]:
        """When the audit stops, in words."""
        return [on_page(in_points(rule)) for rule in self.facts.stop]

    @property
    def adaptive(self) -> bool:
        """Whether earlier answers had a say in what was asked."""
        return self.settings.strategy != "random"

    @property
    def exact(self) -> bool:
        """Whether every question is asked, and rates are counted."""
        return self.certificate is not None and self.certificate.counted

    @property
    def paired(self) -> bool:
        """Whether rates are those of two models' answers in pairs, and none of one model."""
        return self.certificate is not None and self.certificate.paired

    @cached_property
    def counted(self) -> pd.DataFrame:
        """``table`` without the questions that turned out not to count."""
        excluded = self.table["unanswered"].astype(str).str.startswith(EXCLUDED)
        return self.table[~excluded]

    @cached_property
    def in_words(self) -> bool:
        """Whether answers are words, of which neither P(yes) nor its sides mean anything."""
        return any(a.said is not None for call in self.calls for a in call.answers)

    @property
    def reason(self) -> str:
        """Why the audit ended, for a page."""
        ended = self.facts.ended
        return on_page(in_points((ended.reason if ended else None) or "no reason was given"))

    @property
    def elapsed(self) -> float:
        """Seconds of audit until the last thing journaled."""
        times = [row.elapsed for row in self.draws] + [row.elapsed for row in self.calls]
        times += [row.elapsed for row in self.sources]
        return max([*times, self.facts.ended.elapsed if self.facts.ended else 0.0])

    @cached_property
    def captioned(self) -> bool:
        """Whether answers are captions whose objects were checked."""
        return any("objects" in (a.details or {}) for c in self.calls for a in c.answers)

    @cached_property
    def sided(self) -> bool:
        """Whether every question is about something that is present or absent."""
        rates = set(self.settings.oracle.rates)
        return rates == set(SIDES) and not (self.in_words or self.captioned)

    @property
    def scored(self) -> bool:
        """Whether answers are scores of masks."""
        return "EFR" in self.settings.oracle.rates

    @cached_property
    def drawn(self) -> dict[int, DrawRow]:
        """The draw of every call."""
        return {row.call: row for row in self.draws}

    def targets_of(self, call: int, questions: Iterable[int]) -> frozenset[int]:
        """Places of the targets to which any of a call's ``questions`` belongs."""
        if self.certificate is None:
            return frozenset()
        numbers = set(questions)
        if self.certificate.counted:
            if self._membership is None:
                return frozenset()
            inside = self._membership.inside(np.array([*numbers], np.int64))
            return frozenset(np.flatnonzero(inside.any(axis=0)).tolist())
        found = members_of(self.certificate, self.drawn[call], numbers)
        return frozenset(k for k, mine in enumerate(found) if not numbers.isdisjoint(mine))

    @cached_property
    def _membership(self) -> Membership | None:
        """Which targets questions belong to, where no draw says it."""
        population = self.facts.population
        return None if population is None else Membership(population, population["targets"])

    @cached_property
    def answers(self) -> dict[int, AnswerRow]:
        """Every answered question by its number."""
        return {a.question: a for call in self.calls for a in call.answers}

    def calls_to(self, width: float) -> Range | None:
        """Calls, those made included, until every interval is within +-``width``: as they were, or
        by the forecast; None where nothing is certified or can be forecast."""
        game, made = self.played[0], len(self.widest) - 1
        if game is None:
            return None
        if self.widest[-1] <= width:
            first = int(np.argmax(self.widest <= width))
            return Range(first, first, first)
        left = self.facts.all_calls - made
        more = longest(further(game, left, width)) if left > 0 else None
        return None if more is None else more.after(made)

    @property
    def widest(self) -> Floats:
        """(T + 1,): the largest half-width after each draw, abandoned targets apart."""
        kept = [t for t in self.history if not t.emptied] or self.history
        return np.asarray(np.max([t.half_width for t in kept], axis=0))

    def asked(self, question: int) -> Asked:
        """What the question of this number is about."""
        _, variant, concept = self.facts.space.numbering.parts(question)
        relation, severity = self.variants[variant]
        return Asked(self.concepts[concept], relation, severity)

    def change(self, relation: str, severity: int) -> str:
        """Relation and severity as one name; the severity only where there is a choice."""
        alone = sum(name == relation for name, _ in self.variants) == 1
        return relation if alone else f"{relation} {severity}"

    def change_in_words(self, asked: Asked) -> str:
        """``change`` of a question; "" where the image is unchanged."""
        return "" if asked.relation == IDENTITY else self.change(asked.relation, asked.severity)


# -- calls that went wrong -------------------------------------------------------------------------


@dataclass(frozen=True)
class Failure:
    """One call that went wrong.

    ``mistakes``: what was answered wrongly, or not at all, the surest first; ``right``: how many
    other answers there are. ``pictures``: PNGs of the source and the follow-up image, None where
    none were kept; ``targets``: places of the targets that a wrong answer of the call belongs to.
    """

    call: int
    sample: str
    relation: str
    severity: int
    change: str
    pictures: tuple[bytes, bytes] | None
    mistakes: list[AnswerRow]
    right: int
    targets: frozenset[int]


MOST = 500
"""Failing calls that are listed where everything was asked and no picture was kept."""


def failures(content: Content) -> list[Failure]:
    """Every call with a wrong answer: those with pictures first, then the surest mistakes. Where
    everything was asked only those with pictures, some per relation and severity."""
    calls: Iterable[CallRow] = content.calls
    if content.exact:
        wrong = [c for c in calls if any((a.loss or 0.0) >= FAILED for a in c.answers)]
        calls = [c for c in wrong if c.call in content.pictures] or wrong[:MOST]
    found = [failure for call in calls if (failure := _failure(content, call))]
    return sorted(found, key=lambda f: (f.pictures is None, -_distance(f.mistakes[0])))


def _failure(content: Content, call: CallRow) -> Failure | None:
    wrong = [a for a in call.answers if a.loss is not None and a.loss >= FAILED]
    if not wrong:
        return None
    asked = content.asked(wrong[0].question)
    return Failure(
        call.call,
        content.drawn[call.call].sample,
        asked.relation,
        asked.severity,
        content.change(asked.relation, asked.severity),
        content.pictures.get(call.call),
        sorted(wrong, key=lambda row: -_distance(row)),
        sum(a.loss is not None and not a.excluded for a in call.answers) - len(wrong),
        content.targets_of(call.call, (a.question for a in wrong)),
    )


def _distance(row: AnswerRow) -> float:
    """How far the answer lies from the truth; an unanswered question comes last."""
    return -1.0 if row.answer is None else abs(row.answer - (row.truth or 0))


# -- questions in words ----------------------------------------------------------------------------


LONGEST = 400
"""So many characters of a text are shown."""


def question_in_words(row: AnswerRow) -> JsonObject | None:
    """``question``, ``options`` (letter, text, whether it is right) and, where there are none, what
    is ``right``; None where the question was not in words, or its journal kept none."""
    told = (row.details or {}).get(ASKED)
    if not isinstance(told, Mapping):
        return None
    right = [str(text) for text in told.get("right", ())]
    lettered = zip(ascii_uppercase, told.get("options", ()), strict=False)
    options = [[letter, _cut(str(text)), letter in right] for letter, text in lettered]
    return {
        "question": _cut(str(told.get("question", ""))),
        "options": options,
        "right": "" if options else _cut(", ".join(right)),
    }


def _cut(text: str) -> str:
    """A text that may be long, with an ellipsis where it ends early."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _folder(journal: Journal) -> str:
    """The folder of a run from where one stands. Elsewhere, or of no run, "DIR": the page may be
    passed on, and tells no path of this machine."""
    if not isinstance(journal, SQLiteJournal) or journal.path.name != JOURNAL:
        return "DIR"
    folder, here = journal.path.parent, Path.cwd()
    if folder.is_relative_to(here):
        folder = folder.relative_to(here)
    return "DIR" if folder.is_absolute() else quote(str(folder))
