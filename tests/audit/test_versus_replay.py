"""Model B is asked what an earlier audit drew for model A, before a comparison draws by itself."""

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.versus import Versus
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.journal import read_journal
from adaptive_vtt.testing import tiny_dataset
from tests.audit.test_versus import Skilled, both, delta, space
from tests.helpers.interrupted import cut_off
from tests.helpers.twins import slowly

PLAIN: dict[str, Any] = {"surrogate": False, "candidates": 32}
AUDITED: dict[str, Any] = {**PLAIN, "half_width": 0.05, "budget": 12, "seed": 9}


def audited(path: Path, model: Any, questions: QuestionSpace, **options: Any) -> list[Any]:
    """The journal of an earlier audit; what it asked, in order."""
    before = len(model.asked)
    with Audit(questions, model, journal=path, **{**AUDITED, **options}) as audit:
        audit.run()
    return list(model.asked[before:])


def replayed(path: Path | str, a: Any, b: Any, questions: QuestionSpace, **options: Any) -> Versus:
    chosen = {**PLAIN, "budget": 20, "seed": 1, **options}
    return Versus(questions, a, b, journal_a=path, use="replay", **chosen)


def one(name: str, right: float, seed: int) -> Skilled:
    return Skilled(name, right, seed=seed, answers="one")


def few() -> QuestionSpace:
    return QuestionSpace(tiny_dataset(24, 2), ["identity", "brightness_up"])


def test_b_is_asked_what_a_was_in_its_order_and_then_both_go_on(tmp_path: Path):
    (a, b), path = both(), tmp_path / "journal.db"
    asked = audited(tmp_path / "a.db", a, space())
    with replayed(tmp_path / "a.db", a, b, space(), journal=path) as versus:
        verdict = versus.run()
    assert b.asked[:12] == asked
    assert a.asked[12:] == b.asked[12:]
    assert (verdict.calls_a, verdict.calls_b) == (4, 16)
    assert verdict.result.cost == 20
    then, now = (read_journal(p).draws() for p in (tmp_path / "a.db", path))
    assert [d.proposal for d in now[:12]] == [d.proposal for d in then]
    verify(read_journal(path))
    assert "the first 12 questions are those of an earlier audit" in " ".join(
        verdict.result.warnings
    )


def test_verify_recomputes_what_was_replayed_from_the_key_of_then(tmp_path: Path):
    a, b = both()
    audited(tmp_path / "a.db", a, space())
    for name, changed in (("key", "other"), ("draws", 5)):
        path = tmp_path / f"{name}.db"
        with replayed(tmp_path / "a.db", a, b, space(), journal=path) as versus:
            versus.run()
            fact = versus.audit.journal.facts()["replay"]
            versus.audit.journal.set_facts(replay={**fact, name: changed})
        with pytest.raises(JournalError, match="but the key and the proposal come to call"):
            verify(read_journal(path))


@pytest.mark.slow
def test_nothing_that_is_expected_at_a_draw_knows_what_a_lost_later(tmp_path: Path):
    """A's draws are the questions to come: whoever knew its losses there would foresee them."""

    class Turning(Skilled):
        """Wrong from the seventh call of its life on."""

        def _answer(self, prompt: Any) -> Any:
            self.right = 0.6 if len(self.asked) <= 6 else 0.0
            return super()._answer(prompt)

    rows = []
    for model in (both()[0], Turning("old", 0.6)):
        path = tmp_path / f"{len(rows)}.db"
        audited(tmp_path / f"a{len(rows)}.db", model, space())
        options = {"surrogate": True, "budget": 12, "journal": path, "repeat_probes": 0}
        a = tmp_path / f"a{len(rows)}.db"
        with replayed(a, model, both()[1], space(), **options) as versus:
            versus.run()
            rows.append(versus.audit.journal.draws())
    first, second = ([(d.call, d.proposal, d.moves) for d in draws] for draws in rows)
    assert first[:7] == second[:7]  # draw 6, the first that differs, is foreseen alike
    assert [d[2] for d in first[7:]] != [d[2] for d in second[7:]]


@pytest.mark.slow
@pytest.mark.parametrize(("confidence", "runs", "least"), [(0.8, 60, 40), (0.95, 300, 272)])
def test_intervals_hold_at_every_moment_of_a_replay_and_after(
    tmp_path: Path, confidence: float, runs: int, least: int
):
    """A's audit ends early where it looks good: that its length tells of its losses is allowed."""
    questions, held = few(), 0
    for seed in range(runs):
        a, b = one("old", 0.7, 0), one("new", 0.75, 1)
        path = tmp_path / f"{seed}.db"
        options = {"half_width": 0.3, "seed": 100 + seed, "budget": 40, "targets": ["overall"]}
        audited(path, a, questions, **options)
        true, fine = delta(questions, a, b)[0], True
        versus = replayed(path, a, b, questions, seed=seed, confidence=confidence, budget=80)
        while calls := versus.audit.ask(1):
            answers = versus.audit.model.ask([c.prompt for c in calls])
            versus.audit.tell(calls[0], answers[0])
            (status,) = versus.audit.statuses()
            _, lower, upper = status.difference or (0, 0, 0)
            fine &= lower - 1e-9 <= true <= upper + 1e-9
        versus.close()
        held += fine
    assert held >= least  # fewer hold with probability .005 (binomial) at most


def test_draws_that_chose_a_stratum_first_are_replayed_for_the_same_targets_alone(tmp_path: Path):
    a, b, questions = one("old", 0.6, 0), one("new", 0.9, 1), few()
    path, targets = tmp_path / "journal.db", ["overall", "relations"]
    audited(tmp_path / "a.db", a, questions, targets=targets)
    assert "stratum" in read_journal(tmp_path / "a.db").draws()[0].why
    options = {"targets": targets, "journal": path, "budget": 40}
    with replayed(tmp_path / "a.db", a, b, questions, **options) as versus:
        versus.run()
    verify(read_journal(path))
    for other in ({"targets": ["overall"]}, {"targets": targets, "strategy": "random"}):
        with pytest.raises(InputError, match=r"the targets of that audit \(overall label error"):
            replayed(tmp_path / "a.db", a, b, questions, **other)


@pytest.mark.parametrize("stop", [13, *slowly(4)])
def test_an_interrupted_replay_draws_what_an_undisturbed_one_would(tmp_path: Path, stop: int):
    """Blocks of three: A was asked about all of one, B about none."""
    (a, b), options = both(), {"batch": 3, "seed": 1}
    audited(tmp_path / "a.db", a, space())
    paths = [tmp_path / "whole.db", tmp_path / "parts.db"]
    with replayed(tmp_path / "a.db", a, b, space(), journal=paths[0], **options) as versus:
        versus.run()
    again, second = both()
    first = cut_off(both()[1], stop, KeyboardInterrupt())
    with (
        pytest.raises(KeyboardInterrupt),
        replayed(tmp_path / "a.db", again, first, space(), journal=paths[1], **options) as versus,
    ):
        versus.run()
    with replayed(tmp_path / "a.db", again, second, space(), journal=paths[1], **options) as versus:
        verdict = versus.run()
    assert first.asked + second.asked == b.asked
    assert again.asked == a.asked[12:]
    assert verdict.result.cost == 20
    whole, parts = ([(d.call, d.proposal, d.moves) for d in read_journal(p).draws()] for p in paths)
    assert whole == parts
    verify(read_journal(paths[1]))


def test_an_earlier_audit_that_was_interrupted_is_asked_the_rest(tmp_path: Path):
    a, b = both()
    with Audit(space(), a, journal=tmp_path / "a.db", **AUDITED) as audit:
        calls = audit.ask(3)
        audit.tell(calls[2], audit.model.ask([calls[2].prompt])[0])
    asked = [c.prompt.sample_id for c in calls]
    with replayed(tmp_path / "a.db", a, b, space(), budget=9, batch=3) as versus:
        verdict = versus.run()
    assert [key[0] for key in b.asked[:3]] == asked
    assert (verdict.calls_a, verdict.calls_b) == (4, 5)


def test_what_cannot_be_replayed_is_refused_with_a_sentence(tmp_path: Path):
    a, b = both()
    options = {"half_width": None, "strategy": "random", "exploration": 0.0}
    audited(tmp_path / "a.db", a, space(), **options)
    with pytest.raises(InputError, match=r"proposals that give every candidate a chance, got"):
        replayed(tmp_path / "a.db", a, b, space())
    audited(tmp_path / "b.db", a, space())
    with pytest.raises(InputError, match=r"expected journal_a.* got prior_journal, which is about"):
        replayed(tmp_path / "b.db", a, b, space(), prior_journal=tmp_path / "b.db")
    with pytest.raises(InputError, match="an audit of the same space"):
        replayed(tmp_path / "b.db", a, b, space(20))
    a.template_hash = "other words"
    for use in ("condition", "replay"):
        with pytest.raises(InputError, match="the same prompt template, got None then and 'other"):
            Versus(space(), a, b, journal_a=tmp_path / "b.db", use=use, budget=9)
    a.template_hash, a.version = None, "old 2"
    with pytest.raises(InputError, match="the same model's version, got 'old 1' then and 'old 2'"):
        replayed(tmp_path / "b.db", a, b, space())
    with pytest.raises(InputError, match="the same answers per call, got 'all' then and 'one' now"):
        replayed(tmp_path / "b.db", one("old", 0.6, 0), one("new", 0.6, 1), space())


def test_an_earlier_audit_that_went_on_is_another_one(tmp_path: Path):
    a, b = both()
    audited(tmp_path / "a.db", a, space())
    shutil.copy(tmp_path / "a.db", tmp_path / "more.db")
    audited(tmp_path / "more.db", a, space(), budget=13)
    for use, sentence in (
        ("condition", "journal_a .*more.db': this run was continued since the comparison began"),
        ("replay", "was begun with 12 draws of .{8}, not with 13 draws of .{8}: journal_a was"),
    ):
        given: dict[str, Any] = {**PLAIN, "use": use, "journal": tmp_path / f"{use}.db", "seed": 1}
        Versus(space(), a, b, journal_a=tmp_path / "a.db", budget=8, **given).close()
        with pytest.raises(JournalError, match=sentence):
            Versus(space(), a, b, journal_a=tmp_path / "more.db", budget=8, **given)


def test_a_proposal_of_the_earlier_journal_that_was_altered_is_noticed(tmp_path: Path):
    a, b = both()
    audited(tmp_path / "a.db", a, space())
    file = sqlite3.connect(tmp_path / "a.db")
    file.execute(
        "UPDATE draws SET proposal = (SELECT proposal FROM draws WHERE draw = 1) WHERE draw = 4"
    )
    file.commit()
    file.close()
    with (
        pytest.raises(JournalError, match="expected draw 4 to be drawn from its proposal, got"),
        replayed(tmp_path / "a.db", a, b, space()) as versus,
    ):
        versus.run()
