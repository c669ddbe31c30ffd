"""The surrogate of losses by name: built in, of a file, or none."""

from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.config import parse_spec
from adaptive_vtt.config.building import build_audit
from adaptive_vtt.config.journaled import contents
from adaptive_vtt.errors import InputError
from adaptive_vtt.surrogates import QuestionGP
from adaptive_vtt.testing import ScriptedModel, tiny_dataset

FILE = """
import torch
from adaptive_vtt.surrogates import Posterior

class Flat:
    level = {level}

    def __init__(self, relation, severity, concepts, **given):
        self.given = {{"relation": relation, "severity": severity, "concepts": concepts, **given}}
        self.seen = 0

    def observe(self, losses):
        self.seen += len(losses.loss)

    def posterior(self, candidates):
        mean = torch.full((len(candidates.sample),), self.level, dtype=torch.float64)
        return Posterior(mean, mean)
"""


def audit(surrogate: Any, **options: Any) -> Audit:
    space = QuestionSpace(tiny_dataset(), ["identity", "rotation"], severities=[1])
    options = {"half_width": 0.2, "budget": 5, "seed": 1, **options}
    return Audit(space, ScriptedModel(), surrogate=surrogate, **options)


def flat(folder: Path, level: float = 0.25) -> str:
    (folder / "flat.py").write_text(FILE.format(level=level))
    return f"{folder}/flat.py:Flat"


def spec(**changes: Any) -> Any:
    table: dict[str, Any] = {
        "dataset": {"kind": "adaptive_vtt.testing:tiny_dataset"},
        "model": {"kind": "simulated", "target": "unbiased"},
        "audit": {"budget": 3, "seed": 1},
        "certify": {"half_width": 0.2},
    }
    for section, fields in changes.items():
        table[section] = table[section] | fields
    return parse_spec(table, "SPEC.toml")


def test_the_question_gp_by_name_is_the_same_audit_as_by_default() -> None:
    named, plain = audit("question-gp"), audit(True)
    assert isinstance(named.belief.losses, QuestionGP)
    named.run()
    plain.run()
    assert named.journal.facts()["settings"]["surrogate"] is True
    assert [d.call for d in named.journal.draws()] == [d.call for d in plain.journal.draws()]
    assert named.journal.facts()["key"] == plain.journal.facts()["key"]
    assert audit(False).belief.losses is None


def test_one_of_a_file_learns_and_predicts(tmp_path: Path) -> None:
    name = flat(tmp_path)
    made = audit(name)
    made.run()
    found: Any = made.belief.losses
    assert found.seen == 5 * 3
    assert found.given["relation"] == [0, 1]
    assert found.given["severity"] == [v.severity for v in made.space.variants]
    assert (found.given["concepts"], found.given["shared"]) == (3, True)
    predictions = made.belief.predictions
    assert predictions is not None
    assert set(predictions.tolist()) == {0.25}
    assert made.journal.facts()["settings"]["surrogate"] == name


@pytest.mark.parametrize("level", ["1.5", "float('nan')"])
def test_means_outside_0_and_1_are_refused(tmp_path: Path, level: Any) -> None:
    with pytest.raises(
        InputError,
        match=r"surrogate 'Flat' \(.*flat.py, line \d+\): expected \d+ means from 0 to 1, ",
    ):
        audit(flat(tmp_path, level)).run()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("question-pg", r"unknown surrogate 'question-pg'.*question-gp"),
        ("answer-gp", r"surrogate.* 'answer-gp'.*question-gp"),
        ("adaptive_vtt.testing:tiny_dataset", r"surrogate 'adaptive_vtt.testing:tiny_dataset': "),
    ],
)
def test_what_is_no_surrogate_of_losses_is_one_sentence(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        audit(name)


def test_strategies_that_need_the_question_gp_say_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="strategy 'bald' needs the question GP"):
        audit(flat(tmp_path), strategy="bald").run()
    audit(flat(tmp_path), strategy="k-centre").run()


def test_a_spec_names_one_beside_itself(tmp_path: Path) -> None:
    flat(tmp_path)
    given = spec(certify={"surrogate": "flat.py:Flat"})
    made = build_audit(given, tmp_path)
    made.run()
    assert type(made.belief.losses).__name__ == "Flat"
    assert made.journal.facts()["settings"]["surrogate"] == "flat.py:Flat"
    assert "certify.surrogate" in contents(given, tmp_path)
    assert isinstance(build_audit(spec(), tmp_path).belief.losses, QuestionGP)
    without = build_audit(spec(certify={"surrogate": False}), tmp_path)
    assert without.belief.losses is None


@pytest.mark.parametrize(
    ("certify", "said"),
    [
        ({"surrogate_options": {"exact_limits": 7}}, "unknown option 'exact_limits'.*exact_limit"),
        (
            {"surrogate_options": {"fit_limit": 1}},
            "surrogate 'question-gp': fit_limit: expected a whole number of at least 2, got 1",
        ),
        (
            {"surrogate_options": {"fit_steps": 1}, "surrogate": False},
            "surrogate_options: expected a surrogate .* got surrogate = false; leave them out",
        ),
        (
            {"surrogate": "flat.py:Flat", "surrogate_options": {"device": "cpu"}},
            "surrogate 'flat.py:Flat': expected options other than those of the audit .* 'device'",
        ),
    ],
)
def test_options_that_the_surrogate_lacks_are_refused(
    certify: Any, said: str, tmp_path: Path
) -> None:
    flat(tmp_path)
    with pytest.raises(InputError, match=said):
        build_audit(spec(certify=certify), tmp_path)
