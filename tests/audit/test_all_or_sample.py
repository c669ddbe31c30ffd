"""Models that cost no money are timed, and asked everything where that is quicker."""

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import adaptive_vtt as avtt
from adaptive_vtt.audit import all_or_sample
from adaptive_vtt.audit.all_or_sample import WHOLE, changed, choice, insists
from adaptive_vtt.engine.options import Certify
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.journal import read_journal
from adaptive_vtt.journal.facts import Facts, read_facts
from adaptive_vtt.models import adapted_model
from adaptive_vtt.models.local.python import model_of
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from tests.helpers.command_line import plain_start, run

pytestmark = pytest.mark.usefixtures("undrawn")

SPACE = avtt.QuestionSpace(tiny_dataset(40, 2), ["identity", "brightness_up"])
QUIET: dict[str, Any] = {"relations": ["identity"], "on_progress": False, "surrogate": False}
QUIET["self_taught"] = False
CERTIFY = Certify(half_width=0.1, targets=["overall"])


def quick(images: list[Any]) -> list[list[float]]:
    return [[image.mean() / 255, 0.7] for image in images]


def taking(seconds: float, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A model whose calls take so long, as they are timed."""
    monkeypatch.setattr(all_or_sample, "seconds_per_call", lambda space, model: (seconds, 9))
    return adapted_model(model_of(quick))


def facts(out: Path) -> Facts:
    with closing(read_journal(out / "journal.db")) as journal:
        return read_facts(journal.facts())


def strategy(out: Path) -> str:
    return facts(out).settings.strategy


@pytest.mark.parametrize(
    ("seconds", "everything", "nets"),
    [(0.001, True, False), (0.2, True, False), (0.6, False, True), (9.0, False, True)],
)
def test_everything_is_asked_where_that_is_quicker_or_takes_no_minute(
    seconds: float, everything: bool, nets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """240 images: 0.2 s each are 48 s, 0.6 s each 144 s, above some 100 draws and the nets."""
    best = choice(SPACE, taking(seconds, monkeypatch), CERTIFY, None)
    assert best.changes == (WHOLE if everything else {} if nets else {"self_taught": False})
    assert (best.sentence is not None, best.calls) == (everything, 9)


def test_the_sentence_names_the_images_and_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    best = choice(SPACE, taking(0.024, monkeypatch), CERTIFY, 240)
    assert best.sentence == "asking about all 240 images takes about 6 s: rates are exact"
    one = ScriptedModel(answers="one")
    one.most_cost = 0.0
    said = choice(SPACE, one, CERTIFY, None).sentence
    assert said == "asking all 480 questions takes about 12 s: rates are exact"


def test_what_asks_more_than_the_budget_or_costs_money_is_sampled(monkeypatch: pytest.MonkeyPatch):
    model = taking(0.001, monkeypatch)
    assert choice(SPACE, model, CERTIFY, 239).sentence is None
    paid = ScriptedModel()
    assert choice(SPACE, paid, CERTIFY, None).sentence is None
    assert not paid.asked


def test_nets_are_not_taught_where_calls_take_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    large = avtt.QuestionSpace(tiny_dataset(30_000, 2), ["identity", "brightness_up"])
    best = choice(large, taking(0.001, monkeypatch), CERTIFY, None)
    assert best.changes == {"self_taught": False}


def test_a_slow_model_is_asked_little_to_be_timed() -> None:
    asked = []

    def slow(images: list[Any]) -> list[list[float]]:
        asked.append(len(images))
        time.sleep(0.6)
        return quick(images)

    assert all_or_sample.seconds_per_call(SPACE, adapted_model(model_of(slow)))[0] > 0.6
    assert asked == [1]
    seconds, calls = all_or_sample.seconds_per_call(SPACE, adapted_model(model_of(quick)))
    assert seconds < 0.1
    assert 64 < calls <= 1 + 8 + 64


@pytest.mark.parametrize(
    "given",
    [
        {"strategy": "random"},
        {"exploration": 0.3},
        {"repeat_probes": 2},
        {"discover": 3},
        {"questions": 50},
        {"gate": ["overall <= 0.1"]},
        {"half_width": None},
    ],
)
def test_options_of_sampling_insist_on_it(given: dict[str, Any]) -> None:
    assert not insists({"half_width": 0.1, "budget": 5, "repeat_probes": 0})
    assert insists({"half_width": 0.1, **given})


def test_goals_go_and_what_is_asked_about_stays() -> None:
    options = {"half_width": 0.1, "targets": ["overall"], "seed": 3}
    assert changed(options, WHOLE) == {"targets": ["overall"], "seed": 3, "strategy": "everything"}
    groups = changed({"certify": CERTIFY, "sampling": avtt.Sampling(seed=3)}, WHOLE)
    assert groups["certify"].half_width is None
    assert (groups["sampling"].strategy, groups["sampling"].seed) == ("everything", 3)


def test_in_python_it_asks_everything_unless_told_to_sample(tmp_path: Path, capsys: Any):
    data, whole = tiny_dataset(12, 2), tmp_path / "whole"
    result = avtt.audit(data, quick, out=whole, **{**QUIET, "on_progress": True})
    assert "asking about all 12 images takes about 1 s: rates are exact" in capsys.readouterr().err
    assert (result.calls, strategy(whole)) == (12, "everything")
    assert 12 < facts(whole).trial_calls <= 1 + 8 + 12
    assert result.targets["certified"].all()
    assert (whole / "tables" / "classes.csv").is_file()
    again = avtt.audit(data, quick, out=whole, **QUIET)
    assert again.targets.equals(result.targets)
    for number, given in enumerate(({"sample": True}, {"budget": 8})):
        out = tmp_path / str(number)
        avtt.audit(data, quick, out=out, **{**QUIET, "budget": 12, "half_width": 0.45, **given})
        assert strategy(out) == "certify"


def test_a_run_that_samples_goes_on_sampling(tmp_path: Path) -> None:
    data = tiny_dataset(12, 2)
    avtt.audit(data, quick, out=tmp_path, budget=5, **QUIET)
    avtt.audit(data, quick, out=tmp_path, **QUIET)
    assert strategy(tmp_path) == "certify"


def test_a_wrong_shape_is_told_before_anything_is_journaled(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"got shape \(1, 3\)"):
        avtt.audit(tiny_dataset(4, 2), lambda images: [[0.5] * 3] * len(images), out=tmp_path)
    assert not (tmp_path / "journal.db").exists()


def test_the_command_asks_everything_unless_told_to_sample(tmp_path: Path, capsys: Any):
    spec, whole, sampled = str(plain_start(tmp_path)), tmp_path / "whole", tmp_path / "sampled"
    more = ("--set", "certify.half_width=0.3", "--set", 'space.relations=["identity"]')
    assert run("audit", spec, *more, "--out", str(whole)) == 0
    output = capsys.readouterr()
    assert "rates are exact (--sample insists on sampling)" in " ".join(output.err.split())
    assert "exact rates" in output.out
    assert f"{facts(whole).trial_calls} trial calls before" in output.out
    assert strategy(whole) == "everything"
    assert run("verify", str(whole)) == 0
    assert run("resume", str(whole)) == 0
    assert run("audit", spec, *more, "--budget", "4", "--sample", "--out", str(sampled)) == 0
    assert strategy(sampled) == "certify"


def test_a_space_is_data_and_severities_are_options() -> None:
    data, relations = tiny_dataset(12, 2), ["identity", "brightness_up"]
    options: dict[str, Any] = {"on_progress": False}
    result = avtt.census(avtt.QuestionSpace(data, relations), quick, **options)
    assert result.calls == 72
    one = avtt.census(data, quick, relations=relations, severities=[3], **options)
    assert one.census["perturbations"]["severity"].tolist() == [0, 3]
    expected = result.census["rates"].set_index("target")["exact"]
    mine = one.census["rates"].set_index("target")["exact"]
    assert mine["relation identity: label error"] == expected["relation identity: label error"]
    for given in ({"severities": [3]}, {"oracle": "consistency"}, {"labels": [1]}):
        with pytest.raises(InputError, match="QuestionSpace"):
            avtt.audit(SPACE, quick, **given)
