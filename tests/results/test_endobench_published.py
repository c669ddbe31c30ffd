"""EndoBench's questions by number and kind, and its published figures beside an audit's."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

import adaptive_vtt as avtt
from adaptive_vtt.datasets.formats.endobench import from_endobench
from adaptive_vtt.datasets.vqa.taxonomy import (
    GRANULARITIES,
    SCENES,
    TASKS,
    granularity,
    named,
    visual_prompt,
)
from adaptive_vtt.oracles import MultipleChoice
from adaptive_vtt.results.outcomes import clopper_pearson
from adaptive_vtt.results.report import render
from adaptive_vtt.results.report.endobench_beside import (
    accuracies,
    baseline,
    column_of,
    compare,
    counts,
)
from adaptive_vtt.results.report.published import published_tables
from adaptive_vtt.results.report.section import percent
from adaptive_vtt.testing import ScriptedModel
from tests.helpers.endobench_rows import row, write

# -- questions --------------------------------------------------------------------------


def test_visual_prompts_follow_from_the_subtask() -> None:
    subtasks = [name for name, _, _ in TASKS[-1].subtasks]
    found = [visual_prompt("Region Recognition", name) for name in subtasks]
    assert found == ["box", "contour", "multi", "coordinate"]
    assert visual_prompt("Visual Grounding", "Visual Grounding") == "image-level"


@pytest.mark.parametrize(
    ("subtask", "question", "level"),
    [
        ("Mul", "What is in the {} box?", "multi-box"),
        ("Mul", "Which option describes the area outlined by the {} RECTANGLE?", "multi-box"),
        ("Mul", "What do the {} contours delimit?", "multi-contour"),
        ("Mul", "Several regions are marked. What does the {} outline mark?", "multi-contour"),
        ("Mul", "Which finding is marked in {}?", "multi-region"),
        ("Mul", "Is it the {} box or the {} contour?", "multi-region"),
        ("Box", "What is in the {} bounding box?", "box"),
        ("Cont", "What is within the {} boundary?", "contour"),
        ("Coor", "What is in the box [1, 2, 3, 4]?", "image-level"),
    ],
)
def test_granularities_tell_what_is_drawn(subtask: str, question: str, level: str) -> None:
    said = question.replace("{}", "green")
    assert granularity("Region Recognition", named(subtask), said) == level


def test_granularities_of_other_tasks() -> None:
    assert granularity("Region Selection", "Region Selection", "What color?") == "multi-box"
    for task in TASKS[:10]:
        assert granularity(task.name, task.name, "In the green box?") == "image-level"


def test_five_granularities_and_four_columns_have_the_same_questions() -> None:
    """Each task and column falls into levels, and counts that are known are sums of theirs."""
    found: dict[str, int] = {}
    for task in TASKS:
        for name, short, count in task.subtasks or ((task.name, task.short, task.questions),):
            level = "several" if short == "Mul" else granularity(task.name, name, "")
            found[level] = found.get(level, 0) + count
    several = found.pop("several") + found.pop("multi-box")
    assert found == {level: count for level, count in GRANULARITIES.items() if count}
    assert several == 263 + 433
    assert sum(found.values()) + several == 6832
    names = ["image-level", "box", "contour", "multi-box", "multi-contour"]  # the text's
    assert list(GRANULARITIES) == names


def test_counts_add_up() -> None:
    assert counts()["overall"] == 6832
    assert sum(task.questions for task in TASKS) == 6832
    assert sum(count for _, count in SCENES.values()) == 6832
    assert (len(TASKS), len({t.category for t in TASKS})) == (12, 4)
    for task in TASKS:
        assert not task.subtasks or sum(n for _, _, n in task.subtasks) == task.questions


# -- models -----------------------------------------------------------------------------


def test_image_level_accuracies_are_what_the_tasks_left_add_up_to() -> None:
    table, size = accuracies(), counts()
    coordinates = named("Coor")
    others = [t.name for t in TASKS if t.name not in ("Region Selection", "Region Recognition")]
    whole = table.dropna(subset=[*others, coordinates])
    assert len(whole) >= 12
    right = sum((whole[n] * size[n]).round() for n in [*others, coordinates])
    expected = (right / size["image-level"]).drop("Physician", errors="ignore")
    np.testing.assert_allclose(whole["image-level"].drop("Physician", errors="ignore"), expected)
    assert round(100 * table.loc["Gemini-2.5-Pro", "image-level"], 2) == 47.98
    assert np.isnan(table.loc["Physician", "image-level"])  # they had other questions
    assert column_of("granularity", "image-level") == "image-level"
    assert column_of("prompt", "image-level") == ""  # has Region Selection's questions, too


def test_published_accuracies_are_whole_numbers_of_questions() -> None:
    """Holds only with the corrected names; and the overall figures are micro averages."""
    table, size = accuracies(), pd.Series(counts())
    tested = table.drop(index=["Physician", "Random"]).drop(columns="overall")
    right = tested * size.drop("overall")
    away = (right - right.round()).abs() / size.drop("overall")
    assert float(away.max().max()) < 1.01e-4
    tasks = [task.name for task in TASKS]
    whole = table.dropna(subset=tasks)
    assert len(whole) >= 12
    micro = (whole[tasks] * size[tasks]).sum(axis=1) / size["overall"]
    np.testing.assert_allclose(micro, whole["overall"], atol=1.1e-4)


# -- physicians -------------------------------------------------------------------------


def test_physicians_counts_are_the_published_percentages() -> None:
    table, published = baseline(), accuracies().loc["Physician"]
    printed = published[table.index]
    assert printed.notna().all()
    assert (table["accuracy"] - printed).abs().max() < 0.51e-4
    assert len(table) == 21
    left = published.dropna().index.difference(table.index).tolist()
    assert left == ["Lesion Classification", "Polyp Type Classification"]


def test_physicians_counts_add_up_but_for_five_questions_of_one_kind() -> None:
    """Preoperative Assessment and several regions: 80 % of 15 and of 20, in either order."""
    table = baseline()
    parents = ["Macro Phases Identification", "Micro Operation Analysis"]
    parents += ["Instrument Management", "Region Recognition", "overall"]
    right, asked = table.drop(index=parents)[["right", "asked"]].sum()
    assert (right + 4, asked + 5) == (189, 255) == tuple(table.loc["overall", ["right", "asked"]])


def test_no_other_counts_up_to_twenty_give_the_percentages() -> None:
    shares = {"LI": 93.33, "OI": 65, "LT": 70, "LS": 66.67, "LQ": 46.67, "PA": 80, "RS": 93.33}
    shares |= {"SP": 53.33, "SS": 66.67, "SA": 85, "TI": 66.67, "IC": 90, "IP": 73.33}
    shares |= {"Box": 86.67, "Cont": 73.33, "Mul": 80}
    pooled = {("SP", "SS"): 60, ("SA", "TI"): 77.14, ("IC", "IP"): 80, ("Box", "Cont", "Mul"): 80}

    def close(right: int, asked: int, share: float) -> bool:
        return abs(100 * right / asked - share) < 0.0051

    fits = {
        name: [(k, n) for n in range(1, 21) for k in range(n + 1) if close(k, n, share)]
        for name, share in shares.items()
    }
    alone = [(name,) for name in shares if not any(name in several for several in pooled)]
    found: list[dict[str, tuple[int, int]]] = [{}]
    for names in [*alone, *pooled]:
        chosen = [dict(zip(names, c, strict=True)) for c in product(*(fits[n] for n in names))]
        share = pooled.get(names)
        sums = [(one, *map(sum, zip(*one.values(), strict=True))) for one in chosen]
        kept = [one for one, right, asked in sums if share is None or close(right, asked, share)]
        found = [before | one for before in found for one in kept]
    whole = [f for f in found if tuple(map(sum, zip(*f.values(), strict=True))) == (189, 255)]
    stored = published_tables("endobench")["physicians"]
    either = [{"PA": (12, 15), "Mul": (16, 20)}, {"PA": (16, 20), "Mul": (12, 15)}]
    rest = {name: tuple(stored[name]) for name in shares}
    assert sorted(whole, key=lambda f: f["PA"]) == [rest | one for one in either]


@pytest.mark.parametrize(
    ("right", "asked", "lower", "upper"),
    [(14, 15, 0.6805, 0.9983), (0, 10, 0.0, 0.3085), (10, 10, 0.6915, 1.0)],
)
def test_clopper_pearson(right: int, asked: int, lower: float, upper: float) -> None:
    assert clopper_pearson(right / asked, asked, 0.95) == pytest.approx((lower, upper), abs=1e-4)
    exact = binomtest(right, asked).proportion_ci(0.95, method="exact")
    assert clopper_pearson(right / asked, asked, 0.95) == pytest.approx((exact.low, exact.high))


# -- reports ----------------------------------------------------------------------------


def test_report_shows_published_results_beside_the_audit(tmp_path: Path) -> None:
    dataset = from_endobench(write(tmp_path / "e.tsv", [row(k) for k in range(6)]))
    space = avtt.QuestionSpace(dataset, oracle=MultipleChoice())
    audit = avtt.Audit(
        space, ScriptedModel(answers="one"), half_width=0.2, targets=["overall", "concepts"]
    )
    audit.run()
    page = render(audit.journal)
    section = page[page.index('id="published"') :]
    text = section[: section.index("</section>")]
    best = accuracies()["overall"].dropna().idxmax()
    assert best in text
    assert percent(accuracies().loc["GPT-4o", TASKS[0].name]) in text
    assert TASKS[0].name in text
    physicians = text[text.index("The physicians, and how much") :]
    assert "14 of 15" in physicians  # landmarks
    assert "68.0 to 99.9" in physicians
    assert "Clopper-Pearson, 95" in physicians


@pytest.mark.slow
def test_report_shows_four_visual_prompts_and_five_granularities(tmp_path: Path) -> None:
    subtasks = [(name, words) for name in ("Box", "Cont", "Coor") for words in ("Here?",)]
    subtasks += [("Mul", "What is in the red box?"), ("Mul", "What is in the red contour?")]
    rows = [
        row(k, task="RR", subtask=subtasks[k % 5][0], question=subtasks[k % 5][1])
        for k in range(20)
    ]
    dataset = from_endobench(write(tmp_path / "e.tsv", rows))
    space = avtt.QuestionSpace(dataset, oracle=MultipleChoice())
    targets = ["concepts", "group:subtask", "group:prompt", "group:granularity"]
    audit = avtt.Audit(space, ScriptedModel(answers="one"), half_width=0.2, targets=targets)
    table = compare(audit.run()).set_index(["kind", "what"])["Gemini-2.5-Pro"]
    prompts = {"box": 0.4919, "contour": 0.3846, "multi": 0.5133, "coordinate": 0.5058}
    assert table["prompt"].to_dict() == prompts
    levels = table["granularity"].round(4).to_dict()
    assert list(levels) == ["box", "contour", "image-level", "multi-box", "multi-contour"]
    assert (levels["box"], levels["contour"], levels["image-level"]) == (0.4919, 0.3846, 0.4798)
    assert np.isnan([levels["multi-box"], levels["multi-contour"]]).all()
    page = render(audit.journal)
    text = page[page.index('id="published"') :]
    places = [text.index(f">granularity: {level}<") for level in GRANULARITIES]
    assert places == sorted(places)
    assert ">visual prompt: multi<" in text
    assert "Image-level is derived" in text
