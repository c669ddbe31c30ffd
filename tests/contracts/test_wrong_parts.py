"""Parts of a user's own that are wrong: each ends in one sentence that names the part."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from adaptive_vtt import Audit, QuestionSpace, oracles, strategies, surrogates
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.cli import main
from adaptive_vtt.engine.belief import posterior_of
from adaptive_vtt.engine.judge import Judge
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles import Correctness, OracleDefaults
from adaptive_vtt.oracles.paired import Paired
from adaptive_vtt.relations import LabelPreserving, Transformed, resolve
from adaptive_vtt.relations.base import follow_up_of, truth_after
from adaptive_vtt.surrogates import Posterior
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Answer, FollowUp, Outcome, PairedAnswer, Sample
from adaptive_vtt.utils.other_code import naming

SAMPLE = Sample("a", np.zeros((6, 5, 3), np.uint8), {})
HERE = rf"{Path(__file__).name}, line \d+"
AT = rf" \(\S*{HERE}\)"
RNG = np.random.default_rng(0)


def made(base: type, **members: Any) -> Any:
    """Return an object of a class with these members; functions get no ``self``."""
    methods = {n: staticmethod(m) if callable(m) else m for n, m in members.items()}
    return type("Mine", (base,), methods)()


def failing(*_: Any, **__: Any) -> Any:
    raise KeyError("threshold")


IMAGE = r"expected an image H x W x 3 of uint8, got "


@pytest.mark.parametrize(
    ("returned", "got"),
    [
        (None, "None"),
        (SAMPLE.image.tolist(), r"\[\[\[0, 0, 0\], .* \.\.\."),  # type: ignore[union-attr]
        (np.zeros((6, 5, 3)), "6 x 5 x 3 of float64"),
        (np.zeros((6, 5), np.uint8), "6 x 5 of uint8"),
        (np.zeros((6, 5, 1), np.uint8), "6 x 5 x 1 of uint8"),
        (np.zeros((0, 5, 3), np.uint8), "0 x 5 x 3 of uint8"),
    ],
)
def test_a_relation_that_returns_no_image_is_named(returned: Any, got: str) -> None:
    mine = made(LabelPreserving, name="mine", transform=lambda image, severity, rng: returned)
    with pytest.raises(InputError, match=rf"^relation 'mine'{AT}: {IMAGE}{got}$"):
        follow_up_of(mine, SAMPLE, 1, RNG)
    bare = made(object, name="mine", apply=lambda sample, severity, rng: returned)
    with pytest.raises(
        InputError, match=rf"^relation 'mine'{AT}: expected FollowUp\(image\), got "
    ):
        follow_up_of(bare, SAMPLE, 1, RNG)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda image: None, rf"{AT}: {IMAGE}array\(None, "),
        (
            lambda image, severity: image,
            rf"{AT}: it does not fit: TypeError: .*'severity'",
        ),
        (failing, rf" raised KeyError: 'threshold' at .*{HERE}, in failing"),
    ],
)
def test_a_wrong_transform_is_named(function: Any, why: str) -> None:
    with pytest.raises(InputError, match=rf"^relation '\S+'{why}"):
        follow_up_of(Transformed("mine", [function]), SAMPLE, 1, RNG)


@pytest.mark.parametrize(
    ("relation", "why"),
    [
        (
            made(LabelPreserving, name="mine", transform=lambda image, severity: image),
            r"expected transform\(image, severity, rng\), got transform\(image, severity\) \(",
        ),
        (
            made(LabelPreserving, name="mine", expect=lambda truth: truth),
            r"expected expect\(truth, follow_up\), got expect\(truth\) \(",
        ),
        (
            made(LabelPreserving, name="mine", severities=3),
            "expected .* severities, got 'mine' and 3",
        ),
        (made(LabelPreserving, name="mine", severities=()), r"severities, got 'mine' and \(\)"),
        (made(LabelPreserving, name="", severities=(1, 2.5)), r"got '' and \(1, 2\.5\)"),
        (made(LabelPreserving, name="mine", applies=lambda: True), r"expected applies\(concept\)"),
        (made(LabelPreserving, name=None), "expected a text as name, .*, got None"),
        (lambda image: image, r"got function without 'name'; name .* in \[\[space\.transforms\]\]"),
    ],
)
def test_a_relation_of_another_form_is_refused_at_once(relation: Any, why: str) -> None:
    with pytest.raises(InputError, match=rf"^relation '\S+': .*{why}"):
        resolve([relation])


@pytest.mark.parametrize("returned", [None, 0.5, 2, "no", []])
def test_a_true_answer_is_0_or_1(returned: Any) -> None:
    mine = made(LabelPreserving, name="mine", expect=lambda truth, follow_up: returned)
    with pytest.raises(
        InputError, match=rf"^relation 'mine'{AT}: expected a true answer of 0 or 1, got "
    ):
        truth_after(mine, 1, FollowUp(None))
    assert truth_after(made(LabelPreserving, expect=lambda *_: np.int64(0)), 1, FollowUp(None)) == 0


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        (0.5, r"expected Outcome\(loss\), got 0\.5$"),
        (None, r"expected Outcome\(loss\), got None$"),
        (Outcome(2.0), "expected a loss from 0 to 1, got 2.0 for sample 's0', concept 'c0'$"),
        (Outcome(float("nan")), "a loss from 0 to 1, got nan for sample"),
        (Outcome(None), "judge does not fit: TypeError: float"),  # type: ignore[arg-type]
        (Outcome("bad"), "does not fit: ValueError: .*'bad'"),  # type: ignore[arg-type]
        (Outcome(0.5, coordinate=7), "a coordinate from 0 to 1, got 7 for"),
        (Outcome(0.5, margin=float("inf")), r"a margin from -1e\+300 to 1e\+300, got inf for"),
        (Outcome(0.5, excluded=True), "texts as unanswered and excluded, got True"),  # type: ignore
        (Outcome(0.5, details={"a": object()}), "does not fit: TypeError: .* not JSON"),
        (Outcome(0.5, details=[1]), "does not fit: TypeError: 'list'"),  # type: ignore[arg-type]
    ],
)
def test_an_oracle_that_returns_no_outcome_is_named(returned: Any, why: str) -> None:
    oracle = made(OracleDefaults, judge=lambda question, answer, expected, source_answer: returned)
    judge = Judge(QuestionSpace(tiny_dataset(), oracle=oracle), "one")
    with pytest.raises(InputError, match=rf"^oracle 'Mine'{AT}: .*{why}"):
        judge.judged(0, Answer((0.7,)))


@pytest.mark.parametrize(
    ("members", "why"),
    [
        (
            {"judge": failing},
            rf" raised KeyError: 'threshold' at .*{HERE}, in failing, for sample '.+', concept '",
        ),
        ({"judge": None}, ": judge does not fit: TypeError: 'NoneType' .* not callable"),
        (
            {"judge_call": lambda cases, values: 0.5},
            f"{AT}: judge does not fit: TypeError: 'float'",
        ),
        ({"judge_call": lambda cases, values: []}, f"{AT}: judge does not fit: ValueError: zip"),
        ({"expect": failing}, rf" raised KeyError: 'threshold' at .*{HERE}"),
    ],
)
def test_an_oracle_that_fails_is_named_and_the_cause_is_kept(members: Any, why: str) -> None:
    judge = Judge(QuestionSpace(tiny_dataset(), oracle=made(OracleDefaults, **members)), "one")
    with pytest.raises(InputError, match=rf"^oracle 'Mine'{why}") as error:
        judge.judged(0, Answer((0.7,)))
    assert not isinstance(error.value.__cause__, InputError)


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        (0.5, r"expected surrogates\.Posterior\(mean, variance\), got 0\.5$"),
        (None, r"Posterior\(mean, variance\), got None$"),
        (Posterior(torch.zeros(3), torch.zeros(4)), r"4 means from 0 to 1, .* of shape \(3,\)"),
        (Posterior(torch.ones(4), torch.zeros(4, 1)), r"4 finite variances .* shape \(4, 1\)"),
        (Posterior(torch.full((4,), 1.5), torch.zeros(4)), r"got 1\.5 for candidate 0$"),
        (Posterior(torch.full((4,), torch.nan), torch.zeros(4)), "got nan for candidate 0$"),
        (Posterior(torch.ones(4), -torch.ones(4)), r"got -1\.0 for candidate 0$"),
    ],
)
def test_a_surrogate_that_returns_no_posterior_is_named(returned: Any, why: str) -> None:
    mine, points = made(object, posterior=lambda _: returned), SimpleNamespace(sample=np.arange(4))
    with pytest.raises(InputError, match=rf"^surrogate 'Mine'{AT}: .*{why}"):
        posterior_of(mine, points)  # type: ignore[arg-type]


def test_an_oracle_whose_count_of_versions_is_no_number_is_named() -> None:
    space = QuestionSpace(tiny_dataset(), oracle=made(OracleDefaults, most_versions=lambda _: "3"))
    with pytest.raises(InputError, match=rf"^oracle 'Mine'{AT}: most_versions does not fit: Type"):
        Judge(space, "one")


def test_an_oracle_that_judges_two_models_is_named() -> None:
    oracle = made(OracleDefaults, judge=lambda question, answer, expected, source_answer: 0.5)
    space = QuestionSpace(tiny_dataset(), oracle=oracle)
    judge = Judge(space.judged_by(Paired(space.oracle)), "one")
    with pytest.raises(
        InputError, match=rf"^oracle 'Mine'{AT}: judge does not fit: AttributeError"
    ):
        judge.judged(0, Answer((PairedAnswer(0.7, 0.6),)))


def test_a_surrogate_may_return_arrays() -> None:
    mine = made(object, posterior=lambda _: Posterior([0.5] * 4, np.zeros(4)))  # type: ignore
    posterior = posterior_of(mine, SimpleNamespace(sample=np.arange(4)))  # type: ignore[arg-type]
    assert posterior.mean.tolist() == [0.5] * 4


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"weights": failing}, rf" raised KeyError: 'threshold' at .*{HERE}, in failing$"),
        ({"weights": lambda c, b: [[1], [1, 2]]}, f"{AT}: weights does not fit: ValueError"),
        ({"weights": lambda c, b: np.zeros(len(c))}, f"{AT}: expected a weight above 0, got none"),
        ({"mixture": lambda c, b: 3}, f"{AT}: mixture does not fit: TypeError"),
        ({"mixture": lambda c, b: {}}, f"{AT}: expected a weight above 0, got none"),
        ({"reasons": lambda c, b, k: "because"}, f"{AT}: reasons does not fit: TypeError"),
        (
            {"reasons": lambda c, b, k: {"a": np.ones(2)}},
            f"{AT}: reasons does not fit: .* not JSON",
        ),
    ],
)
def test_a_strategy_that_fails_is_named(members: Any, why: str) -> None:
    mine = made(object, **{"weights": lambda c, b: np.ones(len(c)), **members})
    with pytest.raises(InputError, match=rf"^strategy 'Mine'{why}"):
        Selector(QuestionSpace(tiny_dataset()), mine).draw()


def test_a_long_text_of_an_exception_is_cut_and_a_part_is_named_once() -> None:
    def weights() -> None:
        raise ValueError("word " * 100)

    mine = made(object, weights=weights)
    with pytest.raises(InputError) as error, naming("oracle", mine), naming("strategy", mine):
        mine.weights()
    advice = "; once that is mended, 'avtt resume run' continues"
    assert len(f"avtt: {error.value}{advice}") <= 3 * 80
    assert str(error.value).startswith("strategy 'Mine' raised ValueError: word word")
    assert error.value.part == "strategy"


def test_faults_of_this_package_keep_their_traceback() -> None:
    with pytest.raises(KeyError), naming("strategy", strategies.get("random"), "weights"):
        raise KeyError("ours")


PARTS = """
import numpy as np

from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles import Correctness, OracleDefaults


def function(candidates, belief):
    return np.ones(len(candidates))


class Number(OracleDefaults):
    def judge(self, question, answer, expected, source_answer=None):
        return 0.5


class Strict(Correctness):
    def __init__(self, threshold=0.5):
        if threshold > 1:
            raise InputError(f"threshold: expected 1 at most, got {threshold}")
        self.levels = {}[threshold]


class One:
    def __init__(self, concepts):
        pass

    def observe(self, losses):
        pass

    def posterior(self, candidates):
        return 1


made = One(2)
"""


def test_an_error_in_a_constructor_names_the_part(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(PARTS)
    strict = partial(oracles.REGISTRY.make, "parts.py:Strict", base=tmp_path)
    with pytest.raises(
        InputError, match=r"^oracle 'Strict' raised KeyError: 0\.5 at .*parts\.py, "
    ):
        strict({})
    with pytest.raises(InputError, match=r"^oracle 'Strict' \(.*\): threshold: expected 1 at most"):
        strict({"threshold": 2})
    with pytest.raises(InputError, match=r"^oracle 'ordinal': unknown option 'cut'"):
        oracles.REGISTRY.make("ordinal", {"cut": 1})


def test_functions_and_objects_in_place_of_classes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(PARTS)
    expected = (
        r"^strategy .*: expected a class with weights\(.*\), got the function function\(.*; put"
    )
    with pytest.raises(InputError, match=expected):
        strategies.named("parts.py:function", base=tmp_path)
    with pytest.raises(
        InputError, match=r"^surrogate .*: expected a class or a function, got an object of One"
    ):
        surrogates.named("parts.py:made", base=tmp_path)
    with pytest.raises(
        InputError, match=r"^surrogate: expected a name, .*Named\(name, class\), got"
    ):
        surrogates.named(Posterior)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        (
            'oracle.kind="parts.py:Number"',
            "avtt: oracle 'Number' (parts.py, line 13): expected Outcome(loss), got 0.5; once",
        ),
        (
            'certify.surrogate="parts.py:One"',
            "avtt: surrogate 'One' (parts.py, line 31): expected surrogates.Posterior(",
        ),
    ],
)
def test_the_command_ends_with_2_and_without_a_traceback(
    field: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["init", "."])
    (tmp_path / "parts.py").write_text(PARTS)
    with pytest.raises(SystemExit) as ended:
        main(["audit", "SPEC.toml", "--sample", "--budget", "4", "--out", "run", "--set", field])
    assert ended.value.code == 2
    errors = capsys.readouterr().err
    assert sentence in errors
    assert "Traceback" not in errors


def test_an_audit_that_a_part_ended_is_resumed_with_the_part_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["init", "."])
    source = PARTS.replace("return 0.5", "return self.judged()").replace(
        "class Number(OracleDefaults):",
        "class Number(OracleDefaults):\n    count = 0\n\n    def judged(self):\n"
        "        self.count += 1\n        return Outcome(0.0) if self.count <= 4 else 0.5  # not\n",
    )
    source = source.replace("import numpy", "from adaptive_vtt.types import Outcome\nimport numpy")
    (tmp_path / "parts.py").write_text(source)
    kind, plain = 'oracle.kind="parts.py:Number"', "certify.surrogate=false"
    audit = ["audit", "SPEC.toml", "--sample", "--budget", "4", "--out", "run"]
    with pytest.raises(SystemExit) as ended:
        main([*audit, "--set", kind, "--set", plain])
    assert ended.value.code == 2
    assert "(parts.py, line 20): expected Outcome(loss), got 0.5; once" in (
        errors := capsys.readouterr().err
    )
    assert "once that is mended, 'avtt resume run' continues" in errors
    (tmp_path / "parts.py").write_text(source.replace(" if self.count <= 4 else 0.5", ""))
    with pytest.raises(SystemExit) as ended:
        main(["resume", "run", "--budget", "6"])
    assert not ended.value.code
    warned = " ".join(capsys.readouterr().out.split())
    assert "the code of oracle.kind was mended after an error" in warned


class Failing(Correctness):
    """An oracle of a user, which raises an error at its third judgement until it is mended."""

    left = 2

    def judge(self, *case: Any) -> Outcome:
        Failing.left -= 1
        if Failing.left == -1:
            raise ValueError("a fault")
        return super().judge(*case)


def test_an_answer_that_an_oracle_failed_to_judge_is_kept_and_not_paid_for_again(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(answers="one")

    def begun() -> Audit:
        space = QuestionSpace(tiny_dataset(8, 2), ["identity"], oracle=Failing())
        return Audit(space, model, journal=tmp_path / "j.db", budget=6, batch=4, surrogate=False)

    with begun() as audit, pytest.raises(InputError, match="raised ValueError: a fault"):
        audit.run()
    assert len(model.asked) == 4
    with begun() as audit:
        assert audit.cost == 4.0
        assert (audit.run().calls, audit.cost) == (6, 6.0)
        verify(audit.journal)
    assert len(model.asked) == len({*model.asked}) == 6


def test_an_object_without_the_defaults_of_its_kind_is_advised_to_inherit_them() -> None:
    class Plain:
        def judge(self, question: Any, answer: Any, expected: Any, source_answer: Any) -> Outcome:
            return Outcome(0.0)

    why = r"Plain without .needs_source.; .* inherit from adaptive_vtt\.oracles\.OracleDefaults"
    with pytest.raises(InputError, match=why):
        QuestionSpace(tiny_dataset(), oracle=Plain())  # type: ignore[arg-type]
