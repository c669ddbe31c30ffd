"""A census: exact rates as others compute them, its record, and going on with it."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn import metrics

import adaptive_vtt as avtt
from adaptive_vtt import QuestionSpace
from adaptive_vtt.audit.census import Census, CensusResult, all_losses, asking, everything
from adaptive_vtt.audit.census.asking import columns_of
from adaptive_vtt.audit.census.making import Making
from adaptive_vtt.audit.census.record import Columns
from adaptive_vtt.cli.main import main
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.judge import Judge
from adaptive_vtt.errors import InputError, JournalError, ModelError
from adaptive_vtt.models import PythonModel
from adaptive_vtt.oracles import Correctness, MaskDrop, TopClass
from adaptive_vtt.relations import get
from adaptive_vtt.results.outcomes import clopper_pearson
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Floats, Unanswered

CLOSE = 1e-9
RELATIONS = ["identity", "brightness_up"]
VARIANTS = 6
SAMPLES, CLASSES = 40, 4


class Free(ScriptedModel):
    """Scripted, and costs nothing."""

    most_cost = 0.0

    def _answer(self, prompt: Any) -> Any:
        answer = super()._answer(prompt)
        return type(answer)(answer.values) if hasattr(answer, "values") else type(answer)("no")


@pytest.fixture(scope="module")
def labelled() -> QuestionSpace:
    return QuestionSpace(tiny_dataset(SAMPLES, 3), RELATIONS)


@pytest.fixture(scope="module")
def labels_found(labelled: QuestionSpace) -> CensusResult:
    with Census(labelled, Free()) as census:
        return census.run()


@pytest.fixture(scope="module")
def classes() -> QuestionSpace:
    """Images of one class each, the last of which no image has."""
    rng = np.random.default_rng(0)
    truth = np.eye(CLASSES, dtype=int)[rng.integers(0, CLASSES - 1, SAMPLES)]
    ids = [f"s{i}" for i in range(SAMPLES)]
    table = pd.DataFrame(truth, columns=list("abcd"), index=ids)
    sites = pd.DataFrame({"site": np.where(np.arange(SAMPLES) % 3, "north", "south")}, index=ids)
    images = rng.integers(0, 256, (SAMPLES, 8, 8, 3), dtype=np.uint8)
    dataset = from_table(images, table, metadata=sites)
    return QuestionSpace(dataset, RELATIONS, oracle=TopClass())


@pytest.fixture(scope="module")
def classes_found(classes: QuestionSpace) -> CensusResult:
    with Census(classes, Free(seed=3)) as census:
        return census.run()


def wide(found: CensusResult, relation: str, severity: int) -> tuple[Floats, Floats]:
    """Truths and answers, samples x concepts, of one variant."""
    table = found.outcomes
    mine = table[(table["relation"] == relation) & (table["severity"] == severity)]
    mine = mine.assign(sample=mine["sample"].astype(str), concept=mine["concept"].astype(str))
    shape = {"index": "sample", "columns": "concept"}
    return tuple(mine.pivot(**shape, values=v).to_numpy(float) for v in ("truth", "answer"))  # type: ignore[return-value]


def row(table: pd.DataFrame, **of: object) -> "pd.Series[Any]":
    (found,) = [r for _, r in table.iterrows() if all(r[k] == v for k, v in of.items())]
    return found


# -- rates ---------------------------------------------------------------------------------


def test_rates_are_the_means_of_all_losses(
    labelled: QuestionSpace, labels_found: CensusResult
) -> None:
    questions, losses = all_losses(labelled, Free())
    assert labels_found.outcomes["question"].tolist() == questions.tolist()
    rates = labels_found.rates.set_index("target")
    assert rates.loc["overall error", "exact"] == pytest.approx(losses.mean(), abs=CLOSE)
    sample, variant, concept = labelled.parts(questions)
    sides = labelled.truth(questions)
    mine = losses[(concept == 1) & (sides == 1)]
    assert rates.loc["c1: miss rate", "exact"] == pytest.approx(mine.mean(), abs=CLOSE)
    assert rates.loc["c1: miss rate", "questions"] == len(mine)
    third = losses[variant == 3]
    assert rates.loc["relation brightness_up severity 3: error", "exact"] == third.mean()
    assert rates.loc["overall error", "images"] == len(np.unique(sample)) == SAMPLES


def test_targets_of_the_same_questions_are_one(classes_found: CensusResult) -> None:
    with Census(classes_found.space, Free(), targets=["concept:a", "overall"]) as census:
        names = [t.name for t in census.run().targets]
    assert names == [t.name for t in classes_found.targets]
    alone = QuestionSpace(tiny_dataset(4, 2), ["identity"])
    with Census(alone, Free()) as census:
        assert "relation identity: error" not in [t.name for t in census.run().targets]


def test_groups_of_metadata_have_rates(classes_found: CensusResult) -> None:
    table = classes_found.outcomes
    south = table["sample"].astype(str).isin([f"s{i}" for i in range(0, SAMPLES, 3)])
    found = row(classes_found.rates, group="site", value="south")
    assert found["exact"] == pytest.approx(table.loc[south, "loss"].mean(), abs=CLOSE)


def test_an_interval_for_other_images_is_that_of_so_many_coins() -> None:
    rates, count = np.array([0.0, 0.3, 1.0, np.nan]), np.array([20, 50, 20, 0])
    lower, upper = clopper_pearson(rates, count, 0.95)
    assert (lower[0], upper[2]) == (0, 1)
    assert np.isnan([lower[3], upper[3]]).all()
    for bound, tail in (
        (lower[1], binom.sf(14, 50, lower[1])),
        (upper[1], binom.cdf(15, 50, upper[1])),
    ):
        assert 0 < bound < 1
        assert tail == pytest.approx(0.025, abs=CLOSE)


# -- what people know of classifiers -------------------------------------------------------


@pytest.mark.parametrize(("relation", "severity"), [("identity", 0), ("brightness_up", 4)])
def test_figures_of_one_class_per_image_are_those_of_scikit_learn(
    classes_found: CensusResult, relation: str, severity: int
) -> None:
    truth, answers = wide(classes_found, relation, severity)
    right, given = truth.argmax(axis=1), answers.argmax(axis=1)
    found = row(classes_found.perturbations, relation=relation, severity=severity)
    there = sorted({*right})
    of: dict[str, Any] = {"labels": there, "average": "macro", "zero_division": 0}
    expected = {
        "accuracy": metrics.accuracy_score(right, given),
        "balanced accuracy": metrics.recall_score(right, given, **of),
        "precision": metrics.precision_score(right, given, **of),
        "f1": metrics.f1_score(right, given, **of),
        "kappa": metrics.cohen_kappa_score(right, given),
        "auc": np.mean([metrics.roc_auc_score(truth[:, k], answers[:, k]) for k in there]),
    }
    assert found[list(expected)].to_dict() == pytest.approx(expected, abs=CLOSE)


def test_figures_of_labels_are_those_of_scikit_learn(labels_found: CensusResult) -> None:
    truth, answers = wide(labels_found, "brightness_up", 2)
    each = []
    for k, name in enumerate(labels_found.space.concepts):
        said = answers[:, k] >= 0.5
        expected = {
            "precision": metrics.precision_score(truth[:, k], said),
            "recall": metrics.recall_score(truth[:, k], said),
            "specificity": metrics.recall_score(truth[:, k], said, pos_label=0),
            "f1": metrics.f1_score(truth[:, k], said),
            "kappa": metrics.cohen_kappa_score(truth[:, k], said),
            "auc": metrics.roc_auc_score(truth[:, k], answers[:, k]),
        }
        found = row(labels_found.classes, relation="brightness_up", severity=2, concept=name)
        assert found[list(expected)].to_dict() == pytest.approx(expected, abs=CLOSE)
        each.append(metrics.balanced_accuracy_score(truth[:, k], said))
    found = row(labels_found.perturbations, relation="brightness_up", severity=2)
    assert found["balanced accuracy"] == pytest.approx(np.mean(each), abs=CLOSE)


def test_a_class_that_no_image_has_is_said(classes_found: CensusResult) -> None:
    notes = classes_found.classes.set_index(["relation", "severity", "concept"])["note"]
    assert notes["identity", 0, "d"] == "no image has it"
    assert notes["identity", 0, "a"] == ""


def segmenter(images: list[Any]) -> list[Any]:
    return [image.mean(axis=2)[None] > 140 for image in images]


def dice(said: Any, mask: Any) -> float:
    return float(2 * (said & mask).sum() / (said.sum() + mask.sum()))


def test_dice_that_drop_are_counted_as_by_hand() -> None:
    images = np.random.default_rng(1).integers(0, 256, (6, 16, 16, 3), dtype=np.uint8)
    mask = np.zeros((16, 16), bool)
    mask[4:12, 4:12] = True
    dataset = from_table(images, pd.DataFrame({"polyp": [1] * 6}), masks={"polyp": [mask] * 6})
    space = QuestionSpace(dataset, ["contrast_down"], oracle=MaskDrop(thresholds=(0.25, 0.5)))
    with Census(space, PythonModel(segmenter)) as census:
        rates = census.run().rates.set_index("target")["exact"]
    for limit in (0.25, 0.5):
        lost = []
        for number in range(30):
            follow_up = space.follow_up(number).image
            before, after = (
                dice(segmenter([i])[0][0], mask) for i in (images[number // 5], follow_up)
            )
            lost.append((before - after) / before > limit)
        assert 0 < np.mean(lost) < 1
        assert rates[f"polyp drop > {limit:g}: EFR"] == pytest.approx(np.mean(lost), abs=CLOSE)


@pytest.mark.parametrize("answers", ["all", "one"])
@pytest.mark.parametrize("oracle", [TopClass(), Correctness(), Correctness(threshold=0.2)])
def test_judging_at_once_is_judging_one_by_one(oracle: Any, answers: Any) -> None:
    """Of truths that are unknown, too, and relations after which some concepts make no sense."""

    class Partly(get("brightness_up").__class__):  # type: ignore[misc]
        def applies(self, concept: str) -> bool:
            return concept != "c1"

    table = pd.DataFrame({"c0": [0, 1, np.nan, 1], "c1": [1, 0, 1, np.nan], "c2": [0, 0, 1, 0]})
    dataset = from_table(np.zeros((4, 8, 8, 3), np.uint8), table)
    space = QuestionSpace(
        dataset, ["identity", Partly(**vars(get("brightness_up")))], oracle=oracle
    )
    if answers == "one" and isinstance(oracle, TopClass):
        pytest.skip("a class is told of all concepts")
    model, judge = Free(answers=answers), Judge(space, answers)
    calls = everything.calls_in_order(space, model)
    said = model.ask([judge.prompt(call) for call in calls])
    rows = [
        row for call, answer in zip(calls, said, strict=True) for row in judge.judged(call, answer)
    ]
    for mine, theirs in zip(columns_of(judge, calls, said), Columns.of(rows), strict=True):
        assert mine.tolist() == theirs.tolist()
    assert asking._at_once(judge, calls, said) is not None
    assert asking._at_once(judge, calls, [Unanswered("no"), *said[1:]]) is None


# -- the record, and going on --------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 7 calls, so that a few images make many."""
    monkeypatch.setattr(everything, "BATCH", 7)
    monkeypatch.setattr("adaptive_vtt.audit.census.asking.BATCH", 7)


class Breaks(Free):
    """Raises once it was asked so often; nothing it said before is asked again."""

    left = 60

    def ask(self, prompts: Any) -> Any:
        self.left -= len(prompts)
        if self.left < 0:
            raise RuntimeError("out of memory")
        return super().ask(prompts)


@pytest.mark.parametrize("answers", ["all", "one"])
def test_it_goes_on_where_it_broke_off_and_comes_to_the_same(
    small: None, tmp_path: Path, labelled: QuestionSpace, answers: Any
) -> None:
    with Census(labelled, Free(answers=answers)) as census:
        whole = census.run()
    broken, after = Breaks(answers=answers), Free(answers=answers)
    broken.name = after.name = "scripted"
    with Census(labelled, broken, out=tmp_path) as census:
        with pytest.raises(ModelError, match="out of memory"):
            census.run()
        assert census.done == 56
    with Census(labelled, after, out=tmp_path) as census:
        told: list[int] = []
        found = census.run(told.append)
        assert sum(told) == census.calls - 56
    assert found.head == whole.head
    pd.testing.assert_frame_equal(found.rates, whole.rates)
    assert not {*map(repr, broken.asked[:56])} & {*map(repr, after.asked)}


def test_a_finished_census_asks_nothing(tmp_path: Path, labelled: QuestionSpace) -> None:
    with Census(labelled, Free(), out=tmp_path) as census:
        first = census.run()
    again = Free()
    with Census(labelled, again, out=tmp_path) as census:
        assert census.run().head == first.head
    assert not again.asked


@pytest.mark.slow
def test_images_made_in_another_process_are_the_same(
    small: None, labelled: QuestionSpace, labels_found: CensusResult
) -> None:
    batches = [[0, 1, 2], [7, 8], [100]]
    elsewhere = [*Making(labelled, 1)(batches)]
    for images, pairs in zip(batches, elsewhere, strict=True):
        for image in images:
            expected = labelled.follow_up(image).image
            assert np.array_equal(pairs[image][1].image, expected)


def test_a_space_that_cannot_be_sent_is_made_here(labelled: QuestionSpace) -> None:
    unsent = QuestionSpace(tiny_dataset(4, 2), RELATIONS)
    unsent.by_hand = lambda: None  # type: ignore[attr-defined]
    assert [*map(len, Making(unsent, 2)([[0], [1, 2]]))] == [1, 2]


def test_an_answer_that_was_edited_is_noticed(
    small: None, tmp_path: Path, labelled: QuestionSpace
) -> None:
    with Census(labelled, Free(), out=tmp_path) as census:
        census.run()
    database = sqlite3.connect(tmp_path / "census.db")
    with database:
        database.execute(
            "UPDATE batch SET answers = (SELECT answers FROM batch WHERE number = 3) "
            "WHERE number = 2"
        )
    database.close()
    with pytest.raises(JournalError, match="batch 2 was altered after it was written; restore"):
        Census(labelled, Free(), out=tmp_path)


def test_another_census_is_not_mixed_in(tmp_path: Path, labelled: QuestionSpace) -> None:
    with Census(labelled, Free(), out=tmp_path) as census:
        census.run()
    other = Free()
    other.name = "other"
    with pytest.raises(JournalError, match=r"holds a census of another model .* another --out"):
        Census(labelled, other, out=tmp_path)
    mild = QuestionSpace(tiny_dataset(SAMPLES, 3), RELATIONS, severities=[1])
    with pytest.raises(JournalError, match="holds a census of another space"):
        Census(mild, Free(), out=tmp_path)


def test_one_at_a_time_writes_and_links_are_not_followed(
    tmp_path: Path, labelled: QuestionSpace
) -> None:
    held = pytest.raises(JournalError, match="is being written by this process already")
    with Census(labelled, Free(), out=tmp_path / "a"), held:
        Census(labelled, Free(), out=tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "census.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JournalError, match="expected a file of its own, got a link"):
        Census(labelled, Free(), out=tmp_path / "b")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "census.db").write_text("not a database" * 100)
    with pytest.raises(JournalError, match="expected the record of a census"):
        Census(labelled, Free(), out=tmp_path / "c")
    assert not (tmp_path / "elsewhere").exists()


def test_a_model_that_costs_money_is_refused(labelled: QuestionSpace) -> None:
    paid = ScriptedModel()
    with pytest.raises(InputError, match="expected a model that costs nothing, got 'scripted'"):
        Census(labelled, paid)
    assert not paid.asked


def test_questions_without_an_answer_count_as_wrong_and_are_counted(
    labelled: QuestionSpace,
) -> None:
    with Census(labelled, Free(refuse=0.3)) as census:
        found = census.run()
    table = found.outcomes
    silent = table["unanswered"] != ""
    assert 0 < silent.sum() < len(table)
    assert (table.loc[silent, "loss"] == 1).all()
    overall = row(found.rates, kind="overall")
    assert overall["unanswered"] == silent.sum()
    assert overall["exact"] == pytest.approx(table["loss"].mean(), abs=CLOSE)
    assert found.perturbations["unanswered"].sum() == silent.sum()


# -- what people see -----------------------------------------------------------------------


def test_in_one_line_with_everything_in_a_folder(tmp_path: Path) -> None:
    found = avtt.census(tiny_dataset(6, 2), Free(), relations=RELATIONS, out=tmp_path)
    said = json.loads((tmp_path / "census.json").read_text())
    assert said["head"] == found.head
    assert [r["target"] for r in said["rates"]] == [t.name for t in found.targets]
    for name, table in found.tables().items():
        kept = pd.read_csv(tmp_path / "tables" / f"{name}.csv")
        assert len(kept) == len(table)
        assert "toprule" in (tmp_path / "tables" / f"{name}.tex").read_text()
    rates = (tmp_path / "tables" / "rates.tex").read_text()  # the columns that a page holds
    head = "target & questions & unanswered & images & exact & lower & upper "
    assert f"toprule\n{head}" in rates
    page = (tmp_path / "census.html").read_text()
    assert "overall error" in page
    assert "every one of 72 questions" in page


@pytest.fixture
def simulated(tmp_path: Path) -> Path:
    spec = tmp_path / "SPEC.toml"
    spec.write_text(
        '[dataset]\nkind = "adaptive_vtt.experiments.medtest.phantoms:frames"\n'
        "[dataset.options]\ncount = 4\n"
        '[model]\nkind = "simulated"\ntarget = "biased"\n[space]\nrelations = ["identity"]\n'
        "[certify]\nhalf_width = 0.1\n"
    )
    return spec


def test_the_command_asks_everything_and_goes_on(
    simulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        with pytest.raises(SystemExit) as ended:
            main(["census", str(simulated), "--out", str(tmp_path / "run")])
        assert not ended.value.code
        said = capsys.readouterr().out
        assert "exact rates" in said
        assert "overall error" in said
        assert "page:" in said


def test_a_plan_says_where_asking_everything_is_cheaper(
    simulated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["plan", str(simulated)])
    said = " ".join(capsys.readouterr().out.split())
    assert "asking all 24 calls costs nothing, and is exact: 'avtt census'" in said


def test_an_audit_asks_everything_where_that_is_cheaper_and_it_may(
    simulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    with pytest.raises(SystemExit):
        main(["audit", str(simulated), "--census", "auto", "--out", str(run)])
    assert "exact rates" in capsys.readouterr().out
    assert (run / "census.html").exists()
    assert not (run / "journal.db").exists()
    with pytest.raises(SystemExit) as ended:
        main(["audit", str(simulated), "--census", "yes", "--out", str(run)])
    assert ended.value.code == 2
    assert "--census: expected auto, got 'yes'" in capsys.readouterr().err


def test_the_command_refuses_what_costs_money(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "SPEC.toml"
    spec.write_text(
        '[dataset]\nkind = "adaptive_vtt.experiments.medtest.phantoms:frames"\n'
        "[dataset.options]\ncount = 4\n"
        '[model]\nkind = "openai"\nurl = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
        "price_input = 1.0\nprice_output = 1.0\n"
    )
    with pytest.raises(SystemExit) as ended:
        main(["census", str(spec), "--out", str(tmp_path / "run")])
    assert ended.value.code == 2
    assert "census: expected a model that costs nothing" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
