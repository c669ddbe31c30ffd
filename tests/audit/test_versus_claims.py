"""Claims about two models, decided one-sidedly; and how often comparisons err at every moment."""

from pathlib import Path

import numpy as np
import pytest

from adaptive_vtt.audit.everything import all_answers
from adaptive_vtt.audit.versus import Versus
from adaptive_vtt.certify.decisions import Comparison, Decisions
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.experiments.engine.versus_coverage import SETTINGS, Comparing, allowed
from adaptive_vtt.journal import read_journal
from adaptive_vtt.results.gate import Gated, gate
from adaptive_vtt.results.result_file import ResultFile
from tests.audit.test_versus import TARGETS, both, delta, space
from tests.helpers.twins import crossed, slowly

QUICK = {setting.name: setting for setting in SETTINGS}


# -- what is decided ------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at_least": 1.0}, "at_least: expected a difference of rates between -1 and 1, got 1.0"),
        ({"at_least": -0.02, "margin": 0.02}, "expected margin or at_least, got both"),
        ({}, "expected a margin above 0, at_least or a limit .* got none"),
        (
            {"until": "versus:overall <= 0"},
            r"until: expected a stopping rule, .* got 'versus:overall <= 0'",
        ),
        ({"until": Gated}, r"until: expected a stopping rule, an object .* got <class '.*Gated'>"),
        ({"stop": 60, "margin": 0.1}, r"stop: expected a stopping rule, .* got 60"),
    ],
)
def test_claims_that_cannot_be_are_refused(options, message) -> None:
    with pytest.raises(InputError, match=message):
        Versus(space(), *both(), **options)


# -- how often it errs ----------------------------------------------------------------------


KINDS = ["live", "A known, adversarial predictions", "half of A known (condition)"]
KINDS += ["3 claims just missed"]
RUNS = 12


def erring(name: str, raised: float = 0.0) -> int:
    """How many runs err; ``raised``: share of the pool whose losses come back as 1, whatever they
    are."""
    erred = 0
    for seed in range(RUNS):
        run = Comparing(QUICK[name], seed)
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
