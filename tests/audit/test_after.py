"""An audit after an earlier one: its answers foretell losses, its draws are never shared."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptive_vtt as avtt
from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import InputError
from adaptive_vtt.journal import read_journal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.journal.prior import read_prior
from adaptive_vtt.models import Recorded
from tests.helpers.command_line import run

pytestmark = pytest.mark.usefixtures("undrawn")

SAMPLES = 300
NAMES = [f"s{k:03d}" for k in range(SAMPLES)]
RISK = np.repeat([0.05, 0.85], SAMPLES // 2)
"""Half of the images are hard; their features say which."""


def space() -> QuestionSpace:
    labels = pd.DataFrame({"c": np.ones(SAMPLES, int)}, index=NAMES)
    features = RISK[:, None] * 4 - 2 + np.random.default_rng(0).normal(0, 0.1, (SAMPLES, 1))
    return QuestionSpace(avtt.datasets.from_table(None, labels, features=features))


def losses(version: int) -> Any:
    return (np.random.default_rng(version).random(SAMPLES) < RISK).astype(float)


def audited(version: int, **options: Any) -> Audit:
    wrong = losses(version)
    model = Recorded(pd.DataFrame({"c": 1 - wrong}, index=NAMES), name=f"version {version}")
    audit = Audit(space(), model, half_width=0.08, **{"targets": ["overall"], **options})
    audit.run()
    return audit


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("after") / "journal.db"
    audited(0, seed=1, budget=40, journal=path).close()
    return path


# -- what is carried over ------------------------------------------------------------------------


def test_where_losses_were_is_known_of_questions_that_were_not_asked(earlier: Path) -> None:
    """Easy and hard images, of which the earlier audit asked a few."""
    with audited(1, seed=2, budget=1, prior_journal=earlier) as audit:
        hints = audit._made.proxies._proxies["prior journal"]
        unseen = np.setdiff1d(np.arange(SAMPLES), read_prior(earlier).questions)
        told = hints.losses(unseen, np.ones(len(unseen), np.int64))
    assert told[unseen >= SAMPLES // 2].min() > told[unseen < SAMPLES // 2].max()


def test_an_earlier_audit_of_other_targets_tells_its_losses_too(earlier: Path) -> None:
    with audited(1, seed=2, budget=1, prior_journal=earlier, targets=["concepts"]) as audit:
        assert "prior journal" in audit._made.proxies._proxies
        assert verify(audit.journal)


@pytest.mark.slow
def test_draws_are_new_under_the_same_seed_and_intervals_hold(earlier: Path) -> None:
    options: dict[str, Any] = {"seed": 1, "budget": 30}
    with audited(1, prior_journal=earlier, **options) as audit, audited(1, **options) as alone:
        drawn = [row.call for row in audit.journal.draws()][:20]
        assert drawn != [row.call for row in alone.journal.draws()][:20]
        (row,) = audit.result().targets.to_dict("records")
        assert row["lower"] <= losses(1).mean() <= row["upper"]
        assert len(verify(audit.journal)) == 1


def test_audits_of_other_spaces_are_refused(earlier: Path) -> None:
    other = QuestionSpace(avtt.testing.tiny_dataset())
    with pytest.raises(InputError, match=r"prior journal .* expected an audit of this space"):
        Audit(other, avtt.testing.ScriptedModel(), half_width=0.1, prior_journal=earlier)


# -- the command ---------------------------------------------------------------------------------


GOAL = ("--half-width", "0.45", "--targets", "overall", "--set", "certify.self_taught=false")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("commands")
    assert run("init", str(base)) == 0
    spec = base / "SPEC.toml"
    spec.write_text(spec.read_text().replace("[audit]", "[audit]\nseed = 7"))
    assert run("audit", str(spec), *GOAL, "--out", str(base / "first")) == 0
    return base


def test_it_draws_anew(first: Path):
    given = (str(first / "SPEC.toml"), *GOAL, "--after", str(first / "first"))
    assert run("audit", *given, "--out", str(first / "second")) == 0
    facts = [
        read_facts(read_journal(first / name / "journal.db").facts())
        for name in ("first", "second")
    ]
    assert facts[0].settings.seed == 7 != facts[1].settings.seed
    assert facts[0].key != facts[1].key
    assert run("verify", str(first / "second")) == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((*GOAL, "--seed", "7"), "expected another one than that of"),
        (("--explore",), "either --explore, which certifies nothing, or --after"),
    ],
)
def test_what_does_not_go_together_is_said(first: Path, capsys: Any, given: Any, message: str):
    spec, after = str(first / "SPEC.toml"), ("--after", str(first / "first"))
    assert run("audit", spec, *given, *after, "--out", str(first / "third")) == 2
    assert message in capsys.readouterr().err
