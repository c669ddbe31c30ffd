"""Every built-in oracle through all that users do: an audit, a census, a comparison of two models,
and what is made of their journals. Each works, or is refused in the sentence that `REFUSED` names.
"""

import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from adaptive_vtt import Audit, Pool, QuestionSpace
from adaptive_vtt.audit.everything import all_answers, all_losses, means
from adaptive_vtt.audit.rejudging import rejudge
from adaptive_vtt.audit.slices.looking import explore
from adaptive_vtt.audit.versus import Versus
from adaptive_vtt.benchmark.comparing import compare
from adaptive_vtt.certify import named_targets
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import AvttError
from adaptive_vtt.models.base import ModelDefaults
from adaptive_vtt.oracles import REGISTRY, OracleDefaults
from adaptive_vtt.oracles.paired import SAME, Paired
from adaptive_vtt.results.difference import WHOLE
from adaptive_vtt.results.export.failures import export_disagreements, export_failures
from adaptive_vtt.results.gate import gate
from adaptive_vtt.results.report.page import render
from adaptive_vtt.results.result import Result
from adaptive_vtt.stopping import WallClock
from adaptive_vtt.types import Answer, Prompt
from tests.helpers.report_pages import Tags
from tests.helpers.twins import slowly

from .test_oracles import CASES

NAMES = [*REGISTRY.built_in, "captions, no boxes hidden"]
QUICK = {"seed": 0, "surrogate": False, "self_taught": False}
BUDGET, EVERYTHING = 17, 10_000
REFUSED = {
    # a caption is judged by what was said of versions of its image, which no pair is asked about
    ("versus", "captions"): "each answer by itself, got ReducedCaptions",
    # masks are journaled as their scores, which say nothing of how two of them overlap
    ("rejudge", "mask-consistency"): "expected masks, got the scores .* keep_masks = true",
    # one question of its kind takes up to 17 calls: the one that was asked was answered well
    ("export audit", "captions"): "no answer has a loss of 0.5 or more",
}
"""A journey and an oracle, and the sentence that refuses it."""


class Says(ModelDefaults):
    """Answers as the case of an oracle says, by a rule of seed and image."""

    def __init__(self, case: str, seed: int) -> None:
        self.case, self.seed, self.name = CASES[case], seed, f"model {seed}"
        self.version = "1"
        dataset = self.case.dataset()
        self.samples = {dataset.sample_id(k): dataset.sample(k) for k in range(len(dataset))}
        phrased = any(sample.asks for sample in self.samples.values())
        self.answers = "one" if phrased else "all"

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer]:
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: Prompt) -> Answer:
        assert prompt.image is not None
        sample = self.samples[prompt.sample_id]
        rng = np.random.default_rng([self.seed, zlib.crc32(prompt.image.tobytes())])
        return Answer(tuple(self.case.says(sample, each, rng) for each in prompt.concepts))


def space_of(case: str) -> QuestionSpace:
    chosen = CASES[case]
    return QuestionSpace(chosen.dataset(), chosen.relations(), severities=[1], oracle=chosen.make())


def refused(journey: str, case: str) -> AbstractContextManager[Any]:
    """Expects the sentence that refuses this; without one nothing is expected."""
    sentence = REFUSED.get((journey, case))
    return nullcontext() if sentence is None else pytest.raises(AvttError, match=sentence)


class Asked(NamedTuple):
    """The case, and its audit, census and comparison, where that is not refused."""

    case: str
    audits: dict[str, Audit]
    results: dict[str, Result]
    versus: Versus | None


@pytest.fixture(scope="module", params=NAMES)
def asked(request: pytest.FixtureRequest) -> Iterator[Asked]:
    case = request.param
    targets = ["overall", "relations", "concepts"]
    with ExitStack() as opened:
        audit = Audit(
            space_of(case), Says(case, 1), half_width=0.3, budget=BUDGET, targets=targets, **QUICK
        )
        census = Audit(space_of(case), Says(case, 1), strategy="everything", processes=1)
        audits = {"audit": audit.without_beliefs(), "census": census}
        for each in audits.values():
            opened.enter_context(each)
        versus = None
        with refused("versus", case):
            versus = opened.enter_context(compared(case, BUDGET, targets))
            versus.run()
        yield Asked(case, audits, {name: each.run() for name, each in audits.items()}, versus)


def compared(case: str, budget: int, targets: Sequence[str], **options: Any) -> Versus:
    models = Says(case, 1), Says(case, 2)
    versus = Versus(space_of(case), *models, budget=budget, targets=targets, **QUICK, **options)
    versus.audit.without_beliefs()
    return versus


@pytest.mark.parametrize("kind", ["audit", "census"])
class TestOneModel:
    def test_its_journal_is_verified_gated_and_searched_for_slices(
        self, asked: Asked, kind: str
    ) -> None:
        audit, targets = asked.audits[kind], asked.results[kind].targets
        assert targets["estimate"].between(0, 1).all()
        assert [row.name for row in verify(audit.journal)] == [*targets["target"]]
        assert gate(audit.journal, ["overall <= 1"]).state == "pass"
        assert len(explore(audit.journal, audit.space, most=2)) <= 2

    def test_judged_again_by_its_oracle_it_comes_to_the_same(
        self, asked: Asked, kind: str, tmp_path: Path
    ) -> None:
        audit, before = asked.audits[kind], asked.results[kind].targets
        with refused("rejudge", asked.case):
            again = rejudge(audit.journal, space_of(asked.case)).targets
            ends = ["target", "lower", "upper", "questions"]
            assert again[ends].round(9).equals(before[ends].round(9))

    def test_failures_are_exported(self, asked: Asked, kind: str, tmp_path: Path) -> None:
        audit = asked.audits[kind]
        with refused(f"export {kind}", asked.case):
            export_failures(audit.journal, audit.space, tmp_path / "failures")
            assert (tmp_path / "failures" / "failures.csv").is_file()


@pytest.mark.parametrize(
    "case", ["consistency", *slowly("correctness", "top-class", "mask-drop", "captions")]
)
def test_strategies_are_compared(case: str, tmp_path: Path) -> None:
    """Each makes other calls: with a source image, one question or all, masks, versions."""
    options = {"half_width": 0.4, "budget": BUDGET, "surrogate": False, "self_taught": False}
    got = compare(space_of(case), Says(case, 1), ["random"], repeats=1, **options)
    if case == "consistency":  # whose calls about source images draw nothing
        got.save(tmp_path)
    assert {*got.table["strategy"]} == {"uniform", "random"}


# -- two models ------------------------------------------------------------------------------------


def pair_of(asked: Asked) -> Versus:
    if asked.versus is None:
        pytest.skip("refused, as REFUSED says")
    return asked.versus


def test_a_pair_is_and_can_what_its_oracle_is_and_can(asked: Asked) -> None:
    oracle = space_of(asked.case).oracle
    paired = Paired(oracle)
    inherited = {name for name in vars(OracleDefaults) if not callable(getattr(oracle, name))}
    own = {"models", "judge_by", "original", "code", "whole_source", "journal_name"} | {
        n for n in inherited if n[0] == "_"
    }
    assert inherited - own == {*SAME, "error", "regime"}
    for name in inherited - own:
        assert getattr(paired, name) == getattr(oracle, name), name


def test_two_models_are_compared_on_every_target(asked: Asked) -> None:
    versus = pair_of(asked)
    verdict = versus.verdict()
    one = asked.results["audit"].targets
    assert [*verdict.targets["target"]] == [*one["target"]]
    assert (verdict.targets["lower"] <= verdict.targets["upper"]).all()
    assert len(verify(versus.audit.journal)) == len(one)
    assert gate(versus.audit.journal, ["versus:overall <= 1"]).state == "pass"
    page = Tags(render(versus.audit.journal)).text
    assert "Error rate of model 2, the new model, minus that of model 1" in page
    assert verdict.result.derived.empty


def test_what_is_about_one_model_is_refused_of_two(asked: Asked, tmp_path: Path) -> None:
    versus = pair_of(asked)
    journal, space = versus.audit.journal, versus.audit.space
    for about_one in (
        lambda: rejudge(journal, space_of(asked.case)),
        lambda: explore(journal, space, most=2),
        lambda: export_failures(journal, space, tmp_path / "failures"),
    ):
        with pytest.raises(AvttError, match="expected an audit of one model, got a comparison of"):
            about_one()


def pairs() -> list[Any]:
    """Those of which pairs are asked, each in a call of another kind quick."""
    quick = ("top-class", "correctness", "captions, no boxes hidden")
    some = [name for name in NAMES if ("versus", name) not in REFUSED]
    return [*quick, *slowly(*(name for name in some if name not in quick))]


@pytest.mark.parametrize("case", pairs())
def test_where_both_were_asked_everything_differences_are_exact(case: str, tmp_path: Path) -> None:
    never = WallClock(600)  # in place of the decisions, which need no more than a part
    with compared(case, EVERYTHING, ["overall"], until=never) as versus:
        verdict = versus.run()
        page = Tags(render(versus.audit.journal)).text if case == "top-class" else ""
        export_disagreements(versus.audit.journal, versus.audit.space, tmp_path / "apart")
        got = gate(versus.audit.journal, ["versus:overall <= 1"])
    assert verdict.decided
    assert (verdict.targets["upper"] - verdict.targets["lower"]).max() < 1e-9
    assert verdict.promise == WHOLE
    assert all(message.endswith("(exact)") for message in verdict.differences)
    assert str(got.rulings[0]).endswith("(exact)")
    if page:
        assert WHOLE.capitalize() in page
        assert "% sure" not in page
    if not verdict.result.targets["excluded"].any():  # the exact rates of either, subtracted
        space = space_of(case)
        targets = named_targets(space, ["overall"])
        one, two = (means(space, targets, *all_losses(space, Says(case, k))) for k in (1, 2))
        assert (one - two).tolist() == pytest.approx([*verdict.targets["delta"]])


class Loses(ModelDefaults):
    """Tells what it loses on an item: 1 on every n-th."""

    answers, needs_image, gives_losses, version = "one", False, True, "1"

    def __init__(self, n: int) -> None:
        self.n, self.name = n, f"model {n}"

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer]:
        return [Answer((float(int(prompt.sample_id) % self.n == 0),)) for prompt in prompts]


@pytest.mark.parametrize("recorded", [False, True], ids=["asked", "recorded"])
def test_two_models_are_compared_on_the_items_of_a_pool(recorded: bool) -> None:
    pool, never = Pool(12), WallClock(600)
    answers = all_answers(pool, Loses(2)) if recorded else None
    old = None if recorded else Loses(2)
    with Versus(
        pool, old, Loses(3), recorded_a=answers, budget=EVERYTHING, until=never, **QUICK
    ) as versus:
        differences = versus.run().differences
        verify(versus.audit.journal)
        assert "Differences" in Tags(render(versus.audit.journal)).text
    assert differences == ["model 3 is wrong 16.7 points less often (exact)"]
