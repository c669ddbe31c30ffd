"""Drops: how much worse answers are about changed images than about the same original ones."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import adaptive_vtt as avtt
from adaptive_vtt import Audit, Pool, QuestionSpace
from adaptive_vtt.audit.everything import all_losses, means
from adaptive_vtt.audit.rejudging import rejudge
from adaptive_vtt.audit.slices.looking import explore
from adaptive_vtt.certify import named_targets
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import AvttError, InputError, ModelError
from adaptive_vtt.experiments.program import Watch
from adaptive_vtt.families import DROPS
from adaptive_vtt.oracles import Consistency
from adaptive_vtt.oracles.drops import Drops
from adaptive_vtt.results.export.failures import export_failures
from adaptive_vtt.results.gate import gate
from adaptive_vtt.results.report.page import render
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import IDENTITY, Answer, Prompt, Unanswered
from adaptive_vtt.utils.random_streams import generator
from tests.contracts.test_oracle_journeys import Says
from tests.contracts.test_oracles import CASES
from tests.helpers.command_line import run
from tests.helpers.interrupted import cut_off
from tests.helpers.report_pages import Tags
from tests.helpers.result_file import ResultFile
from tests.helpers.twins import slowly

RELATIONS = [IDENTITY, "gaussian_noise", "brightness_down"]
ERRS = {IDENTITY: 0.1, "gaussian_noise": 0.4, "brightness_down": 0.15}
QUICK: dict[str, Any] = {"targets": [DROPS], "surrogate": False, "seed": 0}


class Errs(ScriptedModel):
    """Errs on about a share ``ERRS`` of the images, by one random number per image and concept:
    who errs on an original errs on all of its changes."""

    version = "1"

    def __init__(self, samples: int = 40) -> None:
        super().__init__()
        data = tiny_dataset(samples, 2)
        rows, columns = (g.ravel() for g in np.mgrid[:samples, :2])
        names = [(data.sample_id(s), data.concepts[c]) for s, c in zip(rows, columns, strict=True)]
        self.truths = dict(zip(names, data.truth(rows, columns).tolist(), strict=True))

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        answer = super()._answer(prompt)
        assert isinstance(answer, Answer)
        luck = [generator(7, prompt.sample_id, concept).random() for concept in prompt.concepts]
        right = [self.truths[prompt.sample_id, concept] for concept in prompt.concepts]
        wrong = [each < ERRS[prompt.relation] for each in luck]
        said = tuple(float(t != w) for t, w in zip(right, wrong, strict=True))
        return Answer(said, answer.cost)


def space(samples: int = 40) -> QuestionSpace:
    return QuestionSpace(tiny_dataset(samples, 2), RELATIONS, severities=[1])


def exact(plain: QuestionSpace, model: Any) -> np.ndarray:
    """Return the drop under each relation, from the rates of an audit that asks everything."""
    rates = means(plain, named_targets(plain, ["relations"]), *all_losses(plain, model))
    return rates[1:] - rates[0]


@pytest.fixture(scope="module")
def audited() -> tuple[Audit, Any]:
    audit = Audit(space(), Errs(), half_width=0.25, **{**QUICK, "surrogate": True})
    return audit, audit.run()


def test_drops_are_certified_and_each_original_is_paid_for_once(audited: Any) -> None:
    audit, result = audited
    table, true = result.targets, exact(space(), Errs())
    assert result.reason == "all 2 targets are certified to +-0.25"
    assert table["target"].tolist() == ["drop under gaussian_noise", "drop under brightness_down"]
    assert table["lower"].le(true).all()
    assert table["upper"].ge(true).all()
    assert table["half_width"].max() <= 0.25 + 1e-9
    originals = [asked for asked in audit.model.asked if asked[1] == IDENTITY]
    assert len(originals) == len(set(originals)) == len(audit.journal.sources()) < result.calls / 2
    assert result.cost == result.calls == len(audit.model.asked)
    assert [row.name for row in verify(audit.journal)] == table["target"].tolist()


def test_a_gate_decides_in_points_of_the_drop(audited: Any) -> None:
    audit, _ = audited
    rules = ["drop:gaussian_noise <= 70 %", "drop relation:brightness_down > -0.3", "drops <= 1"]
    found = gate(audit.journal, rules)
    assert found.state == "pass"
    assert "| +" in found.markdown()
    assert "points" in str(found.rulings[0])
    assert gate(audit.journal, ["drop:gaussian_noise <= -50 %"]).state == "fail"
    with pytest.raises(InputError, match="did you mean drop:gaussian_noise"):
        gate(audit.journal, ["relation:gaussian_noise <= 0.5"])


def test_report_and_result_speak_of_drops(audited: Any) -> None:
    audit, result = audited
    ResultFile.model_validate(result.to_dict(), strict=False)
    page = Tags(render(audit.journal)).text
    assert "Drop under each relation: label error on changed images minus that on the same" in page
    assert "Label error changes by" in page
    assert "points" in result._repr_html_()
    failures = result.failures()
    assert (failures["loss"] > 0.5).all()
    assert set(failures["relation"]) <= set(RELATIONS[1:])


@pytest.mark.parametrize("last", [1, *slowly(2), 25])
def test_an_audit_that_was_cut_off_goes_on_and_pays_for_nothing_twice(last: int, tmp_path: Path):
    options = {**QUICK, "half_width": 0.2, "budget": 35}
    whole = Audit(space(), Errs(), **options).run()
    first, second = cut_off(Errs(), last), Errs()
    for model in (first, second):
        audit = Audit(space(), model, journal=tmp_path / "journal.db", **options)
        with audit, suppress(ModelError):
            result = audit.run()
    assert len(first.asked) == last
    assert not set(first.asked) & set(second.asked)
    assert result.targets.equals(whole.targets)


def test_a_cap_keeps_the_price_of_the_original_s_call() -> None:
    result = Audit(space(), Errs(), half_width=0.2, max_cost=8, **QUICK).run()
    assert result.cost in (7, 8)


@pytest.mark.slow
def test_all_intervals_hold_at_every_moment() -> None:
    plain, missed, audits = space(100), 0, 30
    true = exact(plain, Errs(100))
    for seed in range(audits):
        watch = Watch(true)
        options = {**QUICK, "seed": seed, "surrogate": seed % 3 == 0}
        Audit(plain, Errs(100), half_width=0.15, budget=250, **options).run(watch)
        missed += not watch.held
    assert missed <= binom.ppf(0.999, audits, 0.05)


# -- every oracle ----------------------------------------------------------------------------------

JUDGED = ("correctness", "top-class", "ordinal", "mask-drop", "multiple-choice", "contains-truth")
"""Oracles with drops; the others compare with the original image themselves."""


def of_case(case: str, **more: Any) -> QuestionSpace:
    chosen = CASES[case]
    names = [IDENTITY, *(r for r in chosen.relations() if r != IDENTITY)]
    return QuestionSpace(
        chosen.dataset(), names, severities=[0, 1], **{"oracle": chosen.make(), **more}
    )


@pytest.mark.parametrize("case", JUDGED)
def test_asking_everything_gives_the_exact_drops(case: str) -> None:
    audit = Audit(of_case(case), Says(case, 1), targets=[DROPS], strategy="everything", processes=1)
    result = audit.run()
    table = result.targets
    assert (table["upper"] - table["lower"]).max() < 1e-9
    oracle = of_case(case).oracle.alone()
    assert oracle is not None
    assert table["estimate"].tolist() == pytest.approx(
        exact(of_case(case, oracle=oracle), Says(case, 1))
    )
    estimates = [row.estimate for row in verify(audit.journal)]
    assert estimates == pytest.approx(table["estimate"].tolist())
    assert "every drop is exact" in Tags(render(audit.journal)).text.lower()
    ResultFile.model_validate(result.to_dict(), strict=False)


@pytest.mark.parametrize("case", JUDGED)
def test_drops_are_sampled_and_what_is_about_rates_is_refused(case: str, tmp_path: Path) -> None:
    audit = Audit(of_case(case), Says(case, 1), half_width=0.4, budget=16, **QUICK)
    result = audit.run()
    assert result.targets["estimate"].between(-1, 1).all()
    assert len(verify(audit.journal)) == len(result.targets)
    assert gate(audit.journal, ["drops <= 1"]).state == "pass"
    assert "Differences" in Tags(render(audit.journal)).text
    with pytest.raises(AvttError, match="expected an audit of one model, got one of drops"):
        explore(audit.journal, audit.space, most=2)
    with pytest.raises(AvttError, match="expected an audit of one model, got one of drops"):
        export_failures(audit.journal, audit.space, tmp_path / "failures")
    with pytest.raises(AvttError, match="expected an audit of one model, got one of drops"):
        rejudge(audit.journal, of_case(case))


@pytest.mark.parametrize(
    ("chosen", "options", "sentence"),
    [
        (lambda: of_case("captions"), {}, "compares it with the original itself"),
        (lambda: QuestionSpace(tiny_dataset(), RELATIONS, oracle=Consistency()), {}, "Consistency"),
        (lambda: QuestionSpace(tiny_dataset()), {}, "expected a relation that changes images"),
        (space, {"targets": [DROPS, "overall"]}, "expected no other targets, got 'overall', too"),
        (space, {"half_width": None}, "expected a half_width to certify them to"),
        (space, {"at_most": 0.1}, "expected no at_most, .* 'drop:RELATION <= 5 %'"),
        (space, {"self_taught": True}, "expected no self_taught"),
        (space, {"discover": 2}, "expected no discover"),
    ],
)
def test_what_has_no_drops_is_refused(chosen: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Audit(chosen(), Errs(), **{"half_width": 0.2, **QUICK, **options})


def test_a_pool_and_two_models_are_refused() -> None:
    with pytest.raises(InputError, match="expected images under relations, got a pool"):
        Audit(Pool(5), half_width=0.2, **QUICK)
    with pytest.raises(InputError, match="drops': expected an audit of one model"):
        avtt.Versus(space(), Errs(), Errs(), margin=0.1, **QUICK)
    of_drops = space().for_targets([DROPS])
    assert isinstance(of_drops.for_targets([DROPS]).oracle, Drops)
    for targets in ([DROPS], ["overall"]):  # the second was paid for, and crashed when judged
        with pytest.raises(InputError, match="a space without target 'drops', got one of drops"):
            avtt.Versus(of_drops, Errs(), Errs(), margin=0.1, **{**QUICK, "targets": targets})


# -- from one line, and from a spec ----------------------------------------------------------------

SPEC = """
[dataset]
kind = "tests.contracts.test_oracles:exclusive"
[space]
relations = ["identity", "brightness_up"]
[oracle]
kind = "top-class"
[model]
kind = "tests.contracts.test_oracle_journeys:Says"
options = { case = "top-class", seed = 1 }
[certify]
surrogate = false
self_taught = false
"""


def test_one_line_and_the_command_line_certify_drops(tmp_path: Path) -> None:
    options = {**QUICK, "budget": 12}
    found = avtt.audit(space(), Errs(), out=tmp_path / "one", on_progress=False, **options)
    assert found.targets["kind"].tolist() == ["drop"] * 2
    spec, out = tmp_path / "SPEC.toml", str(tmp_path / "run")
    spec.write_text(SPEC)
    sets = ["--half-width", "0.4", "--budget", "14", "--sample", "--out", out]
    assert run("audit", str(spec), "--targets", DROPS, *sets) in (0, 3)
    assert run("resume", out, "--budget", "30") in (0, 3)
    assert run("verify", out) == 0
    assert run("gate", out, "--rule", "drop:brightness_up <= 1") == 0
    assert run("report", out) == 0
    assert "Misclassification rate" in Tags(Path(out, "report.html").read_text()).text
    assert run("runs", str(tmp_path)) == 0
