"""Promises of which a broken line once passed unnoticed."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.belief import Belief, Observation
from adaptive_vtt.engine.proposals import Proposal
from adaptive_vtt.errors import ModelError
from adaptive_vtt.journal import SQLiteJournal
from adaptive_vtt.models import Answer, Endpoint, Prompt, Unanswered
from adaptive_vtt.models.network.attempts import Reply, of_status
from adaptive_vtt.oracles import Consistency
from adaptive_vtt.relations import LabelPreserving
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Image


def proposals(audit: Audit) -> list[dict[int, float]]:
    """The probability of every call, draw by draw."""
    unpacked = [Proposal.unpack(row.proposal) for row in audit.journal.draws()]
    return [dict(zip(w.calls.tolist(), w.probabilities.tolist(), strict=True)) for w in unpacked]


# -- a server that refuses one request --------------------------------------------------------


class Refusing(Endpoint):
    """Answers ``first`` calls, and refuses (400) every call after them."""

    def __init__(self, first: int) -> None:
        super().__init__(name="refusing", host="example.org")
        self.left = first

    def prepare(self, prompt: Prompt) -> Any:
        return None

    async def send(self, request: Any, prompt: Prompt) -> Reply:
        self.left -= 1
        if self.left < 0:
            raise of_status(400, {}, "too large")
        return Reply((0.9, 0.1))


def test_a_refusal_ends_an_audit_without_answers_alone(space: QuestionSpace, tmp_path: Path):
    def refused(path: Path, first: int, budget: int) -> int:
        model = Refusing(first)
        options = {"budget": budget, "journal": path, "fail_on_error": 1}
        with closing(model), Audit(space, model, **options) as audit:
            audit.run()
            answers = [answer for call in audit.journal.calls() for answer in call.answers]
            return sum(answer.unanswered == "http 400" for answer in answers)

    with pytest.raises(ModelError, match="http 400: too large"):
        refused(tmp_path / "new.db", first=0, budget=3)
    path = tmp_path / "resumed.db"
    assert refused(path, first=1, budget=1) == 0
    assert refused(path, first=0, budget=3) == 4  # both concepts of two calls; nothing was answered


# -- every commit reaches the disk ------------------------------------------------------------


def test_every_commit_is_synced_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.dbapi2.connect  # the tests' own waits for no disk

    def connected(*args: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*args, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", connected)
    journal = SQLiteJournal(tmp_path / "journal.db")
    database = opened[0]  # a second may be that which lists the tables
    settings = [
        database.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("synchronous", "journal_mode", "foreign_keys")
    ]
    journal.close()
    assert settings == [2, "wal", 1]  # 2: FULL, which in WAL mode syncs after every transaction


def test_journals_of_tests_wait_for_no_disk(tmp_path: Path):
    journal = SQLiteJournal(tmp_path / "journal.db")
    (synced,) = journal._db.execute("PRAGMA synchronous").fetchone()
    journal.close()
    assert synced == 0


# -- what a draw costs, the call about its source included ------------------------------------


class Half(LabelPreserving):
    """A relation that applies to the second concept alone."""

    name = "half"
    severities = (1, 2)

    def transform(self, image: Image, severity: int, rng: np.random.Generator) -> Image:
        return 255 - image

    def applies(self, concept: str) -> bool:
        return concept == "c1"


@pytest.mark.parametrize("answers", ["one", "all"])
@pytest.mark.parametrize(
    "relations", [["gaussian_noise", "rotation"], [Half()]], ids=["all", "half"]
)
def test_a_draw_whose_source_is_known_is_likelier(answers: Any, relations: list[Any]):
    """The proposal that narrows an interval most per call has weights sqrt(needs / calls)."""
    space = QuestionSpace(
        tiny_dataset(5, 2), ["identity", *relations], oracle=Consistency(), severities=[1, 2]
    )
    options: dict[str, Any] = {"half_width": 0.1, "targets": ["overall"], "surrogate": False}
    audit = Audit(space, ScriptedModel(answers=answers), budget=8, exploration=0.2, **options)
    audit.run()
    first, second = proposals(audit)[:2]
    assert len(set(first.values())) == 1  # no source is known: all cost two calls
    fresh, known = sorted(set(second.values()))
    even = 1 / len(second)
    assert (known - 0.2 * even) / (fresh - 0.2 * even) == pytest.approx(np.sqrt(2))
    drawn = audit.journal.draws()[0]
    of = {call: space.question(call if answers == "one" else 2 * call).sample_id for call in second}
    likely = {call for call, p in second.items() if p == known}
    assert {of[call] for call in likely} == {drawn.sample}
    if answers == "one":  # a source call answers one concept
        assert {call % 2 for call in likely} == {drawn.call % 2}


# -- what strategies read of the answers -------------------------------------------------------


def test_beliefs_count_answers_by_half_and_losses_by_side() -> None:
    space = QuestionSpace(tiny_dataset(3, 2), ["identity", "gaussian_noise"], severities=[1, 2])
    belief = Belief(space, seed=0)
    assert belief.received.shape == (2, 2, 3, 51)
    absent, present = 3 * 2 * 0 + 2 * 1 + 0, 3 * 2 * 1 + 2 * 2 + 1  # by sample, variant, concept
    learnt = [Observation(absent, 0, 1.0, 1.0, 0.5), Observation(present, 1, 0.25, 0.75, 0.875)]
    belief.learn([*learnt, Observation(5, 1, 1.0)])
    assert {*zip(*map(np.ndarray.tolist, belief.received.nonzero()), strict=True)} == {
        (0, 0, 1, 50),
        (1, 1, 2, 38),
    }
    assert belief.tally[0, 0, 1].tolist() == [1, 1.0]
    assert belief.tally[1, 1, 2].tolist() == [2, 1.25]  # unanswered: judged, not heard
    assert [*belief.asked] == [0, 1]
    assert belief.failed == {(0, 0), (0, 1)}


# -- pictures of what went wrong ---------------------------------------------------------------


class AlwaysYes(ScriptedModel):
    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [Answer((1.0,)) for _ in prompts]


def test_a_journal_keeps_pictures_up_to_a_bound_however_often_it_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = 8000
    monkeypatch.setattr("adaptive_vtt.engine.judge.PICTURE_BYTES", bound)
    images = np.zeros((30, 8, 8, 3), np.uint8)
    absent = from_table(images, pd.DataFrame({"c": [0] * 30}))
    space = QuestionSpace(absent, ["identity", "brightness_up"])
    wrong = AlwaysYes()
    kept = []
    for budget in (20, 80, 100):
        with Audit(space, wrong, budget=budget, journal=tmp_path / "journal.db") as audit:
            audit.run()
            kept.append(audit.journal.pictures())
    sizes = [sum(map(len, pair)) for pair in kept[-1].values()]
    assert len(kept[0]) == 20
    assert len(kept[0]) < len(kept[1]) < 80
    assert kept[1] == kept[2]
    assert sum(sizes[:-1]) < bound <= sum(sizes)
