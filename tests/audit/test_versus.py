"""Two models compared: what is certified of their difference; nothing is paid for twice."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.everything import all_answers, all_losses, means
from adaptive_vtt.audit.versus import Versus
from adaptive_vtt.certify import named_targets
from adaptive_vtt.certify.decisions import ALIKE, Comparison, Decisions
from adaptive_vtt.certify.status import Judged, disagreement
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import InputError, JournalError, ModelError
from adaptive_vtt.experiments.engine.versus_coverage import SETTINGS, Comparing, allowed
from adaptive_vtt.journal import read_journal
from adaptive_vtt.journal.rows import FIGURES, AnswerRow, MoveRow
from adaptive_vtt.models.local.recorded import answers_table
from adaptive_vtt.models.pair import pair
from adaptive_vtt.oracles.labels import Correctness
from adaptive_vtt.results.gate import Gated, gate
from adaptive_vtt.results.outcomes import outcomes
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Answer, Outcome, PairedAnswer, Prompt, Unanswered
from tests.helpers.interrupted import cut_off
from tests.helpers.result_file import ResultFile
from tests.helpers.twins import crossed, slowly

TARGETS = ("overall", "relations")


class Skilled(ScriptedModel):
    """Right with a probability, by a rule of (seed, image, concept); 1 a call."""

    def __init__(self, name: str, right: float, **options: Any) -> None:
        super().__init__(**options)
        self.name, self.right = name, right
        self.version = f"{name} 1"

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        answer = super()._answer(prompt)
        if isinstance(answer, Unanswered):
            return answer
        truths = [TRUTHS[prompt.sample_id, concept] for concept in prompt.concepts]
        says = [float((v < self.right) == t) for v, t in zip(answer.values, truths, strict=True)]
        return Answer(tuple(says), answer.cost)


QUICK: dict[str, Any] = {"surrogate": False, "self_taught": False}


def compare(*args: Any, **options: Any) -> Versus:
    """A comparison that predicts nothing, unless options say so: the goldens have those that do."""
    return Versus(*args, **{**QUICK, **options})


def space(samples: int = 40) -> QuestionSpace:
    return QuestionSpace(tiny_dataset(samples, 3), ["identity", "gaussian_noise"])


def truths() -> dict[tuple[str, str], int]:
    dataset = tiny_dataset(400, 3)
    table = dataset.truth(*(g.ravel() for g in np.mgrid[:400, :3])).reshape(400, 3)
    return {
        (dataset.sample_id(s), name): int(table[s, c])
        for s in range(400)
        for c, name in enumerate(dataset.concepts)
    }


TRUTHS = truths()


def delta(questions: QuestionSpace, a: Skilled, b: Skilled) -> np.ndarray:
    targets = named_targets(questions, TARGETS, None)
    rates = [means(questions, targets, *all_losses(questions, model)) for model in (a, b)]
    return rates[0] - rates[1]


def both(right_a: float = 0.6, right_b: float = 0.95) -> tuple[Skilled, Skilled]:
    return Skilled("old", right_a), Skilled("new", right_b, seed=1)


def test_a_comparison_ends_decided_and_its_intervals_hold_the_differences(tmp_path: Path):
    a, b = both()
    path = tmp_path / "journal.db"
    with compare(space(), a, b, targets=TARGETS, margin=0.05, seed=1, journal=path) as versus:
        verdict = versus.run()
    table = verdict.targets
    true = delta(space(), *both())
    assert set(table["decision"]) == {"better"}
    assert verdict.decided
    assert (table["lower"] <= true).all()
    assert (true <= table["upper"]).all()
    assert (table["lower"] > 0).all()
    assert verdict.calls_a == verdict.calls_b == len(a.asked) == len(b.asked)
    assert a.asked == b.asked  # the same questions about the same pictures
    assert verdict.result.cost == 2 * verdict.calls_a
    assert [i.name for i in verify(read_journal(path))] == list(table["target"])


@pytest.mark.slow
def test_every_interval_of_differences_holds_at_every_moment():
    """At .8 fewer than 40 of 60 hold with probability .005 (binomial); the bound is not tight."""
    questions, a, b = space(20), Skilled("old", 0.7), Skilled("new", 0.75, seed=1)
    true, held = delta(questions, a, b)[0], 0
    options: dict[str, Any] = {"confidence": 0.8, "candidates": 64}
    for seed in range(60):
        versus = compare(questions, a, b, budget=60, seed=seed, **options)
        fine = True
        while calls := versus.audit.ask(1):
            answers = versus.audit.model.ask([c.prompt for c in calls])
            versus.audit.tell(calls[0], answers[0])
            (status,) = versus.audit.statuses()
            _, lower, upper = status.difference or (0, 0, 0)
            fine &= lower - 1e-9 <= true <= upper + 1e-9
        held += fine
    assert held >= 40


def test_what_one_model_said_before_the_other_failed_is_not_asked_again(tmp_path: Path):
    a, b = both()
    path = tmp_path / "journal.db"
    with (
        pytest.raises(ModelError, match="power cut"),
        compare(space(), a, cut_off(both()[1], 5), margin=0.02, seed=1, journal=path) as versus,
    ):
        versus.run()
    assert len(a.asked) == 6  # the sixth is paid for, and its pair is not whole
    with compare(space(), a, b, margin=0.02, seed=1, journal=path) as versus:
        verdict = versus.run()
    assert len(set(a.asked)) == len(a.asked) == verdict.calls_a
    assert verdict.result.cost == 2 * verdict.calls_a


# -- model A is known ---------------------------------------------------------------------


@pytest.mark.slow
def test_an_earlier_audit_of_a_is_taken_as_it_is_and_costs_nothing(tmp_path: Path):
    a, b = both()
    earlier = tmp_path / "earlier.db"
    options: dict[str, Any] = {"half_width": 0.01, "budget": 80}
    with Audit(space(), a, seed=9, journal=earlier, **options) as audit:
        audit.run()
    before = set(a.asked)
    verdict = compare(space(), a, b, margin=0.02, seed=1, journal_a=earlier).run()
    asked_now = a.asked[len(before) :]
    assert before
    assert not before & set(asked_now)
    assert verdict.calls_a == len(asked_now) < verdict.calls_b == len(b.asked)
    assert verdict.result.cost == verdict.calls_a + verdict.calls_b
    assert verdict.targets["decision"].tolist() == ["better"]


def test_an_earlier_audit_is_refused_while_it_is_written(tmp_path: Path):
    earlier = tmp_path / "earlier.db"
    message = (
        f"expected an audit that has ended, got one that process {os.getpid()} is writing; wait"
    )
    with Audit(space(), both()[0], half_width=0.3, budget=4, seed=9, journal=earlier) as audit:
        audit.run()
        with pytest.raises(InputError, match=f"{message} until it has ended, or give a copy"):
            compare(space(), *both(), margin=0.02, journal_a=earlier)


# -- answers that are missing ---------------------------------------------------------------


def test_an_answer_that_one_model_does_not_give_is_told_by_its_name():
    a, b = Skilled("old", 0.7, refuse=0.3), Skilled("new", 0.9, seed=1)
    versus = compare(space(), a, b, seed=0, budget=60)
    versus.run()
    asked = outcomes(versus.audit.journal)
    missing = asked["unanswered"].dropna()
    assert set(missing) == {"model A: refused"}
    # A lost 1 there, so that y is 1 where B is right and 1/2 where it is wrong
    assert set(asked.loc[missing.index, "loss"]) <= {0.5, 1.0}


def test_a_pair_is_one_answer_and_both_are_checked():
    a, b = both()
    prompt = Prompt(None, ("c0", "c1"), "s0", "identity", 0)
    (answer,) = pair(a, b).ask([prompt])
    assert isinstance(answer, Answer)
    assert all(isinstance(value, PairedAnswer) for value in answer.values)
    assert answer.cost == 2
    b.answers = "one"
    with pytest.raises(InputError, match="one call answers the same, got 'old' \\(all\\)"):
        pair(a, b)


class Spoilt(Correctness):
    """Every third sample does not count."""

    def judge(self, question: Any, answer: Any, expected: Any, source_answer: Any = None) -> Any:
        if int(question.sample_id[1:]) % 3 == 0:
            return Outcome(0.0, excluded="spoilt")
        return super().judge(question, answer, expected, source_answer)


def test_what_does_not_count_is_in_no_rate_and_in_no_disagreement():
    """Known rates of A would be too low, and every such pair would look lost differently."""
    questions = QuestionSpace(tiny_dataset(12, 3), ["identity"], oracle=Spoilt())
    a, b = Skilled("old", 0.5), Skilled("new", 0.5)
    recorded = all_answers(questions, a)
    losses = all_losses(questions, a)[1]
    assert np.isnan(losses).sum() == questions.size // 3
    verdict = compare(questions, None, b, recorded_a=recorded, budget=12, seed=1).run()
    row = verdict.targets.iloc[0]
    assert (row["lower"], row["upper"]) == pytest.approx((0, 0))  # all was asked: just as good
    verdict = compare(questions, a, b, budget=24, seed=1).run()
    assert verdict.targets["disagreement"].tolist() == [0]


def test_disagreement_undoes_the_draws_and_is_no_less_than_the_difference():
    size, rng = 60, np.random.default_rng(0)
    differs = np.arange(size) < size // 3
    scale = FIGURES.index("scale")

    def judged(count: int) -> list[Judged]:
        """Draw questions, those with different losses a fifth as often as others."""
        draws, weights = [], np.where(differs, 0.2, 1.0)
        for call in range(count):
            shares = weights / weights.sum()
            question = int(rng.choice(size, p=shares))
            figures = [0.0] * len(FIGURES)
            figures[scale] = 1 / shares[question]
            loss = 1.0 if differs[question] else ALIKE
            answer = AnswerRow(question, call, None, None, None, loss, None)
            draws.append((MoveRow(0, (question,), True, tuple(figures)), [answer]))
            weights[question] = 0
        return draws

    runs = [judged(20) for _ in range(200)]
    estimates = [disagreement(draws, size, 0.0) for draws in runs]
    assert np.mean(estimates) == pytest.approx(1 / 3, abs=0.04)
    asked = [rows[0].loss != ALIKE for draws in runs for _, rows in draws]
    assert np.mean(asked) < 0.15  # what was asked says little
    assert disagreement(runs[0], size, 0.9) == 0.9
    assert disagreement(judged(size), size, 0.0) == pytest.approx(1 / 3)
    assert disagreement([], size, 0.0) is None


def test_recorded_answers_that_are_missing_cannot_count_both_ways():
    questions, (a, b) = space(), both()
    recorded = all_answers(questions, a)
    recorded.iloc[::2, 3:] = np.nan
    with pytest.raises(InputError, match="got none to 360 of 720; record them"):
        compare(questions, None, b, recorded_a=recorded, budget=9, unanswered="both")
    compare(questions, None, b, recorded_a=recorded, budget=9)


def test_recorded_answers_have_a_row_for_every_picture(tmp_path: Path):
    """Of pictures without one A was taken to have failed, so that B came out better."""
    questions, (a, b) = space(), both()
    recorded = all_answers(questions, a)
    with pytest.raises(InputError, match="each of 240 pictures, got none for 40, such as sample"):
        compare(questions, None, b, recorded_a=recorded.iloc[40:], budget=9)
    path = tmp_path / "answers.csv"
    recorded.assign(file="x.png").to_csv(path, index=False)  # as avtt pictures writes it
    assert "file" not in answers_table(path)
    compare(questions, None, b, recorded_a=answers_table(path), budget=9).close()
    recorded.assign(file=0.5).to_csv(path, index=False)
    assert "file" in answers_table(path)  # a concept of that name
    with pytest.raises(InputError, match="expected a whole number as severity"):
        compare(questions, None, b, recorded_a=recorded.assign(severity="strong"), budget=9)


# -- what is refused, and what verify finds --------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "a margin above 0, at_least or a limit"),
        ({"margin": 1.0}, "margin: expected a number from 0 to below 1, got 1.0"),
        ({"margin": 0.1, "half_width": 0.1}, "expected a margin, got half_width"),
        ({"margin": 0.1, "use": "replays"}, "unknown use 'replays'.*did you mean 'replay'"),
        ({"margin": 0.1, "use": "replay"}, "expected journal_a where use = 'replay', got none"),
        ({"margin": 0.1, "surrogate": "mine.py:GP"}, "expected True or False in a comparison"),
        ({"at_least": 1.0}, "at_least: expected a difference of rates between -1 and 1, got 1.0"),
        ({"at_least": -0.02, "margin": 0.02}, "expected margin or at_least, got both"),
        ({"until": Gated}, r"until: expected a stopping rule, an object .* got <class '.*Gated'>"),
        ({"budget": 1}, "budget: expected at least 2 calls"),
        ({"budget": 8, "strategy": "everything"}, "expected a strategy that draws, got 'everyth"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], sentence: str):
    with pytest.raises(InputError, match=sentence):
        compare(space(), *both(), **options)
    with pytest.raises(InputError, match="model a or its recorded answers"):
        compare(space(), None, both()[1], margin=0.1)


def test_verify_notices_a_decision_that_the_rows_do_not_bear(tmp_path: Path):
    path = tmp_path / "journal.db"
    with compare(space(), *both(0.7, 0.72), budget=40, seed=1, journal=path) as versus:
        versus.run()
        rows = [status.row() for status in versus.audit.statuses()]
        rows[0]["decision"] = "better"
        versus.audit.journal.set_facts(intervals=rows)
    with pytest.raises(JournalError, match="decision better"):
        verify(read_journal(path))


def test_decisions_follow_from_the_ends_of_an_interval():
    compare = Comparison(margin=0.1)
    lower, upper = np.array([0.51, 0.3, 0.46, 0.5, 0.44]), np.array([0.6, 0.49, 0.55, 0.7, 0.52])
    assert compare.decisions(lower, upper) == ["better", "worse", "within", "open", "open"]
    least, most = compare.differences(lower, upper)
    np.testing.assert_allclose(least, [0.02, -0.4, -0.08, 0, -0.12])
    np.testing.assert_allclose(most, [0.2, -0.02, 0.1, 0.4, 0.04])
    against = Comparison((0.3,), -1.0, 0.05)  # B's rate against A's
    assert against.decisions(np.array([0.1, 0.31]), np.array([0.29, 0.34])) == ["better", "worse"]


def test_targets_are_checked_before_anything_is_taught_or_asked(monkeypatch: pytest.MonkeyPatch):
    a, b = both()
    answers = all_answers(space(), a)
    monkeypatch.setattr("adaptive_vtt.audit.versus.answered", never)
    monkeypatch.setattr("adaptive_vtt.models.local.self_taught.SelfTaught.of", never)
    taught = {"self_taught": True, "budget": 8}
    for targets, weights in (["relation:fog"], None), (["overall"], {"fog": 2.0}):
        wrong = {"targets": targets, "weights": weights}
        with pytest.raises(InputError, match="fog"):
            compare(space(), None, b, recorded_a=answers, **wrong, **taught)
        with pytest.raises(InputError, match="fog"):
            Audit(space(), b, half_width=0.1, **wrong, **taught)
    assert not b.asked


def never(*_: Any, **__: Any) -> None:
    raise AssertionError("it was begun")


# -- claims, decided one-sidedly ---------------------------------------------------------

SETTING_OF = {setting.name: setting for setting in SETTINGS}


@pytest.mark.parametrize(
    ("pivot", "scale", "claim", "limit"),
    [(0.5, 2.0, -0.02, 0.49), (0.3, -1.0, -0.02, 0.32), (0.3, -1.0, 0.02, 0.28)],
)
def test_a_claim_is_about_the_rate_that_just_reaches_it(pivot, scale, claim, limit) -> None:
    compare = Comparison((pivot,), scale, at_least=claim)
    assert compare.goals[0] == pytest.approx(limit, abs=1e-8)
    least, most = compare.differences(compare.goals, compare.goals)
    assert claim - 2e-9 < least[0] == most[0] < claim  # what reaches it exactly fulfils it
    assert compare.aims(np.array([limit + 0.03]))[0] == pytest.approx(0.03, abs=1e-8)


@pytest.mark.parametrize(
    ("scale", "sides"), [(2.0, ["holds", "fails"]), (-1.0, ["fails", "holds"])]
)
def test_the_side_of_the_limit_tells_whether_a_claim_holds(scale, sides) -> None:
    claims = Decisions(np.array([0.5, 0.5, 0.5]), np.full(3, 0.05), shared=False)
    claims.play(np.array([3.1, 0, 2.9]), np.array([0, 3.1, 0]))  # log 20 = 2.996
    claims.settle(np.zeros(3), np.ones(3))
    found = Comparison((0.5,), scale, at_least=0.0).claimed(claims)
    assert found == [*sides, "open"]


def decided(path: Path, claim: float, seed: int = 1, **options):
    a, b = both()
    if options.pop("known", False):
        options["recorded_a"] = all_answers(space(), a)
        a = None
    options = {"targets": TARGETS, "surrogate": False, **options}
    with Versus(space(), a, b, at_least=claim, seed=seed, journal=path, **options) as versus:
        return versus.run()


@pytest.mark.slow
@pytest.mark.parametrize(("known", "claim"), crossed([False, True], [-0.05, 0.5]))
def test_claims_are_decided_verified_and_gated(tmp_path: Path, known: bool, claim: float) -> None:
    path, decision = tmp_path / "journal.db", "holds" if claim < 0 else "fails"
    verdict = decided(path, claim, known=known)
    true = delta(space(), *both())
    assert set(verdict.targets["decision"]) == {decision}
    assert ((true >= claim) == (decision == "holds")).all()
    assert (verdict.targets["lower"] <= true + 1e-9).all()
    assert (true <= verdict.targets["upper"] + 1e-9).all()
    journal = read_journal(path)
    assert len(verify(journal)) == len(true)
    ruling = gate(journal, [f"versus:overall <= {-claim}"])
    assert ruling.state == ("pass" if decision == "holds" else "fail")
    assert f"at least {claim:g} is decided rightly with the same probability" in ruling.promise
    ResultFile.model_validate(verdict.result.to_dict())


def test_another_claim_is_another_comparison(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    decided(path, -0.05, budget=10)
    with pytest.raises(JournalError, match=r"at_least -0\.05, not -0\.1"):
        decided(path, -0.1, budget=20)


# -- how often it errs ----------------------------------------------------------------------


KINDS = ["live", "A known, adversarial predictions", "half of A known (condition)"]
KINDS += ["3 claims just missed"]
RUNS = 12


def erring(name: str, raised: float = 0.0) -> int:
    """How many runs err; ``raised``: share of the pool whose losses come back as 1, whatever they
    are."""
    erred = 0
    for seed in range(RUNS):
        run = Comparing(SETTING_OF[name], seed)
        if raised:
            run.losses = np.maximum(run.losses, run.rng.random(run.losses.shape) < raised)
        erred += run.errs(120)
    return erred


@pytest.mark.slow
@pytest.mark.parametrize("name", [KINDS[1], *slowly(KINDS[0], *KINDS[2:])])
def test_comparisons_err_no_more_often_than_they_may_at_any_moment(name: str) -> None:
    """At level .05 more errors than allowed, 4, have a chance of .001 at most, each."""
    assert erring(name) <= allowed(RUNS)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_pool_whose_answers_are_not_those_that_count_is_noticed(name: str) -> None:
    """The measure measures: where a fifth of the pool is not judged as it counts, the test above
    fails of every kind of comparison."""
    assert erring(name, raised=0.2) > allowed(RUNS)


def test_models_that_agree_are_not_taken_for_one_that_does_not_look() -> None:
    """A pair that agrees is journaled as 1/2, whatever the two models answered."""

    def bright(images: Any) -> list[list[float]]:
        return [[float(image.mean() > 100)] * 3 for image in images]

    asked = QuestionSpace(tiny_dataset(), relations=["identity"])
    with compare(asked, bright, bright, budget=20, seed=0) as versus:
        warnings = versus.run().result.warnings
    assert not any("the same answer" in warning for warning in warnings)
