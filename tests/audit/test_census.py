"""A census: an audit that asks everything, with exact rates as others compute them."""

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn import metrics

import adaptive_vtt as avtt
from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit import in_order
from adaptive_vtt.audit.everything import all_losses
from adaptive_vtt.audit.in_order import judged_at_once
from adaptive_vtt.audit.rendering_ahead import Making
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.judge import Judge
from adaptive_vtt.errors import InputError, JournalError, ModelError
from adaptive_vtt.journal import MemoryJournal, read_journal
from adaptive_vtt.journal.rows import DrawRow
from adaptive_vtt.models import PythonModel
from adaptive_vtt.oracles import Consistency, Correctness, MaskDrop, TopClass
from adaptive_vtt.relations import get
from adaptive_vtt.results.gate import gate
from adaptive_vtt.results.outcomes import clopper_pearson, outcomes
from adaptive_vtt.results.report import render
from adaptive_vtt.results.report.evidence import Evidence
from adaptive_vtt.results.result import Result, summarise
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Floats, Unanswered
from adaptive_vtt.utils.figures import percent
from tests.helpers.command_line import run as command
from tests.helpers.interrupted import cut_off

CLOSE = 1e-9
RELATIONS = ["identity", "brightness_up"]
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
def few() -> QuestionSpace:
    """12 images under 6 variants: 72 calls."""
    return QuestionSpace(tiny_dataset(12, 3), RELATIONS)


class Whole:
    """A census in memory, its journal, and its tables."""

    def __init__(self, space: QuestionSpace, model: Any, **options: Any) -> None:
        self.space, self.journal = space, MemoryJournal()
        options = {"fail_on_error": 1.0, "processes": 0, **options}
        audit = Audit(space, model, strategy="everything", journal=self.journal, **options)
        self.result: Result = audit.run()
        self.outcomes = outcomes(self.journal)
        self.rates, self.perturbations = (
            self.result.census[name] for name in ("rates", "perturbations")
        )
        self.classes = self.result.census["classes"].fillna({"note": ""})


@pytest.fixture(scope="module")
def labels_found(labelled: QuestionSpace) -> Whole:
    return Whole(labelled, Free())


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
def classes_found(classes: QuestionSpace) -> Whole:
    return Whole(classes, Free(seed=3))


def wide(whole: Whole, relation: str, severity: int) -> tuple[Floats, Floats]:
    """Truths and answers, samples x concepts, of one variant."""
    table = whole.outcomes
    mine = table[(table["relation"] == relation) & (table["severity"] == severity)]
    mine = mine.assign(sample=mine["sample"].astype(str), concept=mine["concept"].astype(str))
    shape = {"index": "sample", "columns": "concept"}
    return tuple(mine.pivot(**shape, values=v).to_numpy(float) for v in ("truth", "answer"))  # type: ignore[return-value]


def row(table: pd.DataFrame, **of: object) -> "pd.Series[Any]":
    (found,) = [r for _, r in table.iterrows() if all(r[k] == v for k, v in of.items())]
    return found


# -- rates ---------------------------------------------------------------------------------


def test_rates_are_the_means_of_all_losses(labelled: QuestionSpace, labels_found: Whole) -> None:
    questions, losses = all_losses(labelled, Free())
    assert labels_found.outcomes["question"].tolist() == questions.tolist()
    rates = labels_found.rates.set_index("target")
    assert rates.loc["overall label error", "exact"] == pytest.approx(losses.mean(), abs=CLOSE)
    sample, variant, concept = labelled.parts(questions)
    sides = labelled.truth(questions)
    mine = losses[(concept == 1) & (sides == 1)]
    assert rates.loc["c1: miss rate", "exact"] == pytest.approx(mine.mean(), abs=CLOSE)
    assert rates.loc["c1: miss rate", "questions"] == len(mine)
    third = losses[variant == 3]
    assert rates.loc["relation brightness_up severity 3: label error", "exact"] == third.mean()
    assert rates.loc["overall label error", "images"] == len(np.unique(sample)) == SAMPLES


def test_the_share_of_images_with_any_wrong_label(labels_found: Whole, classes_found: Whole):
    worst = labels_found.outcomes.groupby(["relation", "severity", "sample"])["loss"].max()
    targets = labels_found.result.targets.set_index("target")["any_wrong"]
    assert targets["overall label error"] == pytest.approx(worst.mean(), abs=CLOSE)
    assert targets["relation identity: label error"] == worst["identity"].mean()
    assert np.isnan(targets["c1: miss rate"])
    shares = labels_found.perturbations.set_index(["relation", "severity"])["any label wrong"]
    assert shares["brightness_up", 3] == worst["brightness_up", 3].mean()
    share = percent(worst["identity"].mean())
    assert f"any label wrong in {share} of the images" in str(labels_found.result.headline)
    page = " ".join(re.sub(r"<[^>]*>|\s", " ", render(labels_found.journal)).split())
    assert f"any label wrong in {share} of the images" in page
    assert "any_wrong" not in classes_found.result.targets


def test_groups_of_metadata_have_rates(classes_found: Whole) -> None:
    table = classes_found.outcomes
    south = table["sample"].astype(str).isin([f"s{i}" for i in range(0, SAMPLES, 3)])
    south &= table["truth"] == 1
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


def test_figures_of_one_class_per_image_are_those_of_scikit_learn(classes_found: Whole) -> None:
    relation, severity = "brightness_up", 4
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


def test_figures_of_labels_are_those_of_scikit_learn(labels_found: Whole) -> None:
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


def test_a_class_that_no_image_has_is_said(classes_found: Whole) -> None:
    notes = classes_found.classes.set_index(["relation", "severity", "concept"])["note"]
    assert notes["identity", 0, "d"] == "no image has it"
    assert notes["identity", 0, "a"] == ""


def segmenter(images: list[Any]) -> list[Any]:
    return [image.mean(axis=2)[None] > 140 for image in images]


def test_mean_dice_and_iou_are_those_of_scikit_learn_whatever_the_source_scores() -> None:
    """Of two objects; where one is nowhere found in the source, its score of 0 counts, too."""
    images = np.random.default_rng(1).integers(0, 256, (6, 16, 16, 3), dtype=np.uint8)
    images[0] //= 2  # nothing is found in it
    masks = {name: [np.zeros((16, 16), bool) for _ in images] for name in ("polyp", "tool")}
    for k, (polyp, tool) in enumerate(zip(*masks.values(), strict=True)):
        polyp[4:12, : 6 + k], tool[: 3 + k] = True, True
    dataset = from_table(images, pd.DataFrame({"polyp": [1] * 6, "tool": [1] * 6}), masks=masks)

    def both(images: list[Any]) -> list[Any]:
        return [np.repeat(segmenter([image])[0], 2, axis=0) for image in images]

    rows = []
    for severity, k in product((0, 3), range(6)):
        changed = (
            get("contrast_down").apply(dataset.sample(k), severity, None) if severity else None
        )
        image = images[k] if changed is None else changed.image
        for name, true in masks.items():
            pair = true[k].ravel(), segmenter([image])[0].ravel()
            rows.append((severity, name, metrics.f1_score(*pair), metrics.jaccard_score(*pair)))
    scores = pd.DataFrame(rows, columns=["severity", "concept", "dice", "iou"])
    expected = scores.groupby(["severity", "concept"]).mean()
    for metric in ("dice", "iou"):
        oracle = MaskDrop(metric, thresholds=(0.25, 0.5))  # type: ignore[arg-type]
        space = QuestionSpace(dataset, ["contrast_down"], oracle=oracle)
        whole = Whole(space, PythonModel(both))
        for (severity, name), figures in expected.iterrows():  # type: ignore[misc]
            found = row(whole.classes, severity=severity, concept=name)[["dice", "iou"]]
            assert found.to_dict() == pytest.approx(figures.to_dict(), abs=CLOSE)
        for severity, figures in expected.groupby("severity").mean().iterrows():
            found = row(whole.perturbations, severity=severity)[["dice", "iou"]]
            assert found.to_dict() == pytest.approx(figures.to_dict(), abs=CLOSE)
        table = whole.classes
        assert {"drop > 0.25", "drop > 0.5"} <= {*table}
        assert not {"kappa", "precision", "f1", "auc", "error"} & {*table, *whole.perturbations}
        rates = whole.rates.set_index("target")["exact"]
        lost = table[(table["concept"] == "tool") & (table["severity"] > 0)]["drop > 0.5"].mean()
        assert rates["tool drop > 0.5: EFR"] == pytest.approx(lost, abs=CLOSE)
        verify(whole.journal)


def test_a_confusion_matrix_is_that_of_scikit_learn(classes_found: Whole) -> None:
    table = classes_found.result.census["confusion"]
    truth, answers = wide(classes_found, "brightness_up", 4)
    mine = table[(table["relation"] == "brightness_up") & (table["severity"] == 4)]
    assert mine["true class"].tolist() == list("abcd")
    expected = metrics.confusion_matrix(
        truth.argmax(axis=1), answers.argmax(axis=1), labels=range(CLASSES)
    )
    assert mine[list("abcd")].to_numpy().tolist() == expected.tolist()
    found = classes_found.classes.set_index(["relation", "severity", "concept"])
    recalls = metrics.recall_score(truth.argmax(axis=1), answers.argmax(axis=1), average=None)
    assert found.loc[("brightness_up", 4, "a"), "recall"] == pytest.approx(recalls[0], abs=CLOSE)
    error = row(classes_found.perturbations, relation="brightness_up", severity=4)["error"]
    assert error == pytest.approx(1 - np.trace(expected) / SAMPLES, abs=CLOSE)


def test_an_image_without_an_answer_has_a_column_of_its_own(classes: QuestionSpace) -> None:
    table = Whole(classes, Free(refuse=0.3)).result.census["confusion"]
    assert 0 < table["no answer"].sum() < len(classes.variants) * SAMPLES
    assert table[[*"abcd", "no answer"]].to_numpy().sum() == len(classes.variants) * SAMPLES


def test_answers_compared_with_each_other_have_an_error_alone() -> None:
    space = QuestionSpace(tiny_dataset(6, 2), RELATIONS, oracle=Consistency())
    whole = Whole(space, Free())
    figures = {*whole.perturbations, *whole.classes}
    assert figures == {"relation", "severity", "concept", "questions", "unanswered", "error"}


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
    questions = np.sort(space.nth(np.arange(space.size)))
    calls = np.unique(space.image_of(questions)) if answers == "all" else questions
    answered = model.ask([judge.prompt(call) for call in calls.tolist()])
    said = dict(zip(calls.tolist(), answered, strict=True))
    at_once = judged_at_once(judge, said)
    assert at_once == {call: judge.judged(call, answer) for call, answer in said.items()}
    assert not judged_at_once(judge, {**said, int(calls[0]): Unanswered("no")})


def test_questions_without_an_answer_count_as_wrong_and_are_counted(few: QuestionSpace) -> None:
    whole = Whole(few, Free(refuse=0.3))
    table = whole.outcomes
    silent = table["unanswered"].notna()
    assert 0 < silent.sum() < len(table)
    assert (table.loc[silent, "loss"] == 1).all()
    overall = row(whole.rates, kind="overall")
    assert overall["unanswered"] == silent.sum()
    assert overall["exact"] == pytest.approx(table["loss"].mean(), abs=CLOSE)
    assert whole.perturbations["unanswered"].sum() == silent.sum()
    verify(whole.journal)
    both = Whole(few, Free(refuse=0.3), unanswered="both")
    ends = row(both.result.targets, kind="overall")
    answered = table.loc[~silent, "loss"].sum() / len(table)
    assert ends["lower"] == pytest.approx(answered, abs=CLOSE)
    assert ends["upper"] == pytest.approx(answered + silent.mean(), abs=CLOSE)
    assert not ends["certified"]
    verify(both.journal)


# -- the same journal, and what takes it ---------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 7 calls, so that a few images make many."""
    monkeypatch.setattr(in_order, "BATCH", 7)
    monkeypatch.setattr(in_order.InOrder, "batch", 7)


@pytest.mark.parametrize("answers", ["all", "one"])
def test_it_goes_on_after_a_crash(small: None, tmp_path: Path, few: QuestionSpace, answers: Any):
    whole = Whole(few, Free(answers=answers))
    broken, after = cut_off(Free(answers=answers), 60), Free(answers=answers)
    options: Any = {"strategy": "everything", "journal": tmp_path / "journal.db", "processes": 0}
    with Audit(few, broken, **options) as audit, pytest.raises(ModelError, match="power cut"):
        audit.run()
    with Audit(few, after, **options) as audit:
        result = audit.run()
    pd.testing.assert_frame_equal(result.census["rates"], whole.rates)
    assert len(after.asked) == result.calls - 56
    assert not {*map(repr, broken.asked[:56])} & {*map(repr, after.asked)}
    verify(read_journal(tmp_path / "journal.db"))


@pytest.mark.slow
def test_images_made_in_another_process_are_the_same(labelled: QuestionSpace) -> None:
    batches = [[0, 1, 2], [7, 8], [100]]
    elsewhere = [*Making(labelled, 1)(batches)]
    for images, pairs in zip(batches, elsewhere, strict=True):
        for image in images:
            expected = labelled.follow_up(image).image
            assert np.array_equal(pairs[image][1].image, expected)


def rewritten(journal: MemoryJournal, change: Any) -> MemoryJournal:
    """A journal with a sound chain whose rows, of draws and of calls, are changed."""
    made = MemoryJournal()
    for fact in journal.fact_rows():
        made.set_facts(**{fact.name: json.loads(fact.value)})
    draws, calls = change(journal.draws(), journal.calls())
    made.add(draws)
    made.add(calls)
    return made


def skipped(draws: list[DrawRow], calls: Any) -> Any:
    """Without the third call, as if it had never been there."""
    left = [replace(d, draw=k) for k, d in enumerate([*draws[:2], *draws[3:]])]
    return left, [*calls[:2], *calls[3:]]


def swapped(draws: list[DrawRow], calls: Any) -> Any:
    first, second, *rest = draws
    return [replace(second, draw=0), replace(first, draw=1), *rest], calls


def by_chance(draws: list[DrawRow], calls: Any) -> Any:
    return [replace(draws[0], probability=0.5), *draws[1:]], calls


def milder(draws: list[DrawRow], calls: Any) -> Any:
    answers = tuple(replace(a, loss=0.0) for a in calls[0].answers)
    worse = tuple(replace(a, loss=1.0) for a in calls[1].answers)
    return draws, [replace(calls[0], answers=answers), replace(calls[1], answers=worse), *calls[2:]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (skipped, "draw 2 is call 3, which is not the next one in order"),
        (swapped, "draw 0 is call 1, which is not the next one in order"),
        (by_chance, "draw 0: expected probability 1 and no proposal"),
        (milder, "the rows come to .* the journal says otherwise"),
    ],
)
def test_verify_refuses_other_calls_and_rates(labels_found: Whole, change: Any, message: str):
    verify(rewritten(labels_found.journal, lambda *rows: rows))
    with pytest.raises(JournalError, match=message):
        verify(rewritten(labels_found.journal, change))


@pytest.mark.parametrize("field", ["estimate", "images"])
def test_verify_refuses_a_rate_that_was_edited(labels_found: Whole, field: str) -> None:
    journal = rewritten(labels_found.journal, lambda *rows: rows)
    rows = journal.facts()["intervals"]
    rows[3][field] = 0
    journal.set_facts(intervals=rows)
    with pytest.raises(JournalError, match=f"says otherwise: .*{field} 0"):
        verify(journal)


def test_rates_follow_from_the_journal_before_the_end(few: QuestionSpace) -> None:
    cut = Whole(few, Free(), budget=20)
    assert cut.result.reason == "20 calls were made"
    rows = cut.result.targets.set_index("target")
    assert not rows["certified"].all()
    exact = Whole(few, Free()).rates.set_index("target")["exact"]
    assert (rows["lower"] <= exact + CLOSE).all()
    assert (exact <= rows["upper"] + CLOSE).all()
    journal = rewritten(cut.journal, lambda *rows: rows)
    journal.set_facts(intervals=None, ended=None)
    verify(journal)
    now = summarise(journal).targets.set_index("target")
    pd.testing.assert_series_equal(now["upper"], rows["upper"])


def test_a_gate_decides_on_exact_rates(labels_found: Whole) -> None:
    exact = row(labels_found.rates, kind="overall")["exact"]
    for limit, state in ((exact + 1e-6, "pass"), (exact - 1e-6, "fail")):
        assert gate(labels_found.journal, [f"overall <= {limit:.9f}"]).state == state


def test_goals_and_choices_have_no_place_in_it(labelled: QuestionSpace) -> None:
    for name, value in {"half_width": 0.1, "exploration": 0.2, "repeat_probes": 2}.items():
        options: Any = {name: value}
        with pytest.raises(InputError, match=f"'everything': expected no {name}"):
            Audit(labelled, Free(), strategy="everything", **options)


def test_a_model_that_costs_money_takes_a_cap() -> None:
    data = tiny_dataset(20, 2)
    with pytest.raises(InputError, match="census: expected a limit for model 'scripted'"):
        avtt.census(data, ScriptedModel(), relations=RELATIONS)
    model = ScriptedModel()
    result = avtt.census(data, model, relations=RELATIONS, max_cost=1.5, on_progress=False)
    assert 0 < result.cost <= 1.5
    assert 0 < len(model.asked) < 120


# -- what people see -----------------------------------------------------------------------


def test_in_one_line_with_everything_in_a_folder(tmp_path: Path) -> None:
    found = avtt.census(tiny_dataset(6, 2), Free(), relations=RELATIONS, out=tmp_path)
    said = json.loads((tmp_path / "result.json").read_text())
    assert said["journal_head"] == found.head
    for name, table in found.census.items():
        kept = pd.read_csv(tmp_path / "tables" / f"{name}.csv")
        assert len(kept) == len(table) == len(said["census"][name])
    text = (tmp_path / "tables" / "rates.csv").read_text()
    assert max(len(digits) for digits in re.findall(r"0\.0*(\d+)", text)) == 6
    page = (tmp_path / "report.html").read_text()
    assert "overall label error" in page
    assert "Exact rates" in page
    assert "census-map-plot-data" in page
    for edit, head, code in ((False, found.head, 0), (False, "0" * 32, 2), (True, found.head, 2)):
        if edit:
            (tmp_path / "tables" / "rates.csv").write_text(text.replace("overall", "overrun"))
        assert command("verify", str(tmp_path), "--head", head) == code


def test_every_failure_counts_whether_its_pictures_were_kept_or_not(
    labels_found: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, evidence = labels_found.outcomes, Evidence(labels_found.journal)
    wrong = table[table["loss"] >= 0.5]
    calls = wrong["call"].nunique()
    assert calls > len(evidence.pictures) > 0
    for place, target in enumerate(labels_found.result.statuses):
        part, values = wrong, target.id.columns()
        for name in ("relation", "severity", "concept"):
            part = part if values[name] is None else part[part[name] == values[name]]
        side = part["truth"] if values["side"] is None else values["side"]
        assert evidence.failing[place] == part.loc[part["truth"] == side, "call"].nunique()
    assert f"answer: {calls} in all, in turn" in render(labels_found.journal)
    monkeypatch.setattr("adaptive_vtt.results.report.evidence.MOST", 7)
    assert f"answer: {calls} in all, showing 7 of {calls}, " in render(labels_found.journal)


def test_the_command_asks_everything_whatever_the_goals_of_the_spec(tmp_path: Path, capsys: Any):
    spec, run = tmp_path / "SPEC.toml", tmp_path / "run"
    spec.write_text(
        '[dataset]\nkind = "adaptive_vtt.experiments.medtest.phantoms:frames"\n'
        "[dataset.options]\ncount = 2\nsize = 64\n"
        '[model]\nkind = "simulated"\ntarget = "biased"\n[space]\nrelations = ["identity"]\n'
        "[certify]\nhalf_width = 0.1\n"
    )
    assert command("census", str(spec), "--out", str(run)) == 0
    output = capsys.readouterr().out
    assert "exact rates" in output
    assert "overall label error" in output
    assert "report.html" in "".join(output.split())  # which a narrow terminal folds
    tables = {path.name: path.read_text() for path in (run / "tables").iterdir()}
    for path in (run / "tables").iterdir():
        path.unlink()
    assert command("report", str(run)) == command("verify", str(run)) == 0
    assert {path.name: path.read_text() for path in (run / "tables").iterdir()} == tables
