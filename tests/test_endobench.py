"""EndoBench's files, its published figures, and audits of it."""

import base64
import csv
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest
import torch
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
from adaptive_vtt.engine.proxies import Proxies
from adaptive_vtt.errors import InputError
from adaptive_vtt.models import Answer, Prompt
from adaptive_vtt.oracles import MultipleChoice
from adaptive_vtt.report import render
from adaptive_vtt.report.beside import published_tables
from adaptive_vtt.report.endobench_physicians import baseline, clopper_pearson
from adaptive_vtt.report.endobench_published import accuracies, column_of, compare, counts
from adaptive_vtt.report.section import percent
from adaptive_vtt.testing import ScriptedModel
from adaptive_vtt.types import Ask

COLUMNS = [
    "index", "image", "image_path", "question", "category", "task", "subtask", "scene", "answer",
    "dataset", "gt", *"ABCDEF",
]  # fmt: skip


def picture(seed: int, side: int = 40) -> str:
    """A JPEG of ``side`` pixels in base64."""
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)
    return base64.b64encode(cv2.imencode(".jpg", pixels)[1].tobytes()).decode()


def row(number: int, **cells: str) -> dict[str, str]:
    task = TASKS[number % 3]
    plain = {
        "index": str(number),
        "image": picture(number),
        "image_path": f"image_{number}.jpg",
        "question": f"What is this ({number})?",
        "category": task.category,
        "task": task.name,
        "subtask": task.name,
        "scene": list(SCENES)[number % 2],
        "answer": "B",
        "dataset": "Kid",
        "gt": "two",
        "A": "one",
        "B": "two",
        "C": "three",
        "D": "four",
        "E": "",
        "F": "",
    }
    return plain | cells


def write(path: Path, rows: Sequence[dict[str, str]]) -> Path:
    pd.DataFrame(rows, columns=COLUMNS).to_csv(path, sep="\t", index=False)
    return path


def test_rows_become_samples(tmp_path: Path) -> None:
    rows = [row(k) for k in range(6)]
    dataset = from_endobench(write(tmp_path / "e.tsv", rows))
    assert dataset.concepts == tuple(task.name for task in TASKS[:3])
    assert dataset.counts.tolist() == [[0, 2]] * 3
    sample = dataset.sample(4)
    assert sample.id == "4"
    assert sample.asks == {TASKS[1].name: Ask("What is this (4)?", ("one", "two", "three", "four"))}
    assert sample.answers == {TASKS[1].name: ("B",)}
    assert sample.metadata["scene"] == "Gastroscopy"
    assert sample.metadata["options"] == 4
    data = np.frombuffer(base64.b64decode(picture(4)), np.uint8)
    decoded = cv2.cvtColor(cv2.imdecode(data, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
    np.testing.assert_array_equal(sample.image, decoded)


def test_words_are_kept_as_they_stand(tmp_path: Path) -> None:
    words = {"A": "NA", "B": "None", "C": "null", "D": "007", "E": "nan", "F": "n/a"}
    question = 'Which "sign"\tis seen,\nif any?'
    tail = [row(1), row(2, question='An open " quote')]
    dataset = from_endobench(write(tmp_path / "e.tsv", [row(0, question=question, **words), *tail]))
    (ask,) = dataset.sample(0).asks.values()
    assert ask == Ask(question, ("NA", "None", "null", "007", "nan", "n/a"))
    assert next(iter(dataset.sample(2).asks.values())).text == 'An open " quote'
    assert dataset.sample(1).image is not None  # found behind quotes and line breaks


def test_unquoted_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "e.tsv"
    rows = [row(0, question='Is this 5" long?'), row(1)]
    lines = ["\t".join(COLUMNS), *("\t".join(r[c] for c in COLUMNS) for r in rows)]
    path.write_text("\r\n".join(lines) + "\r\n")
    dataset = from_endobench(path)
    assert next(iter(dataset.sample(0).asks.values())).text == 'Is this 5" long?'
    assert dataset.sample(1).image is not None


def test_columns_may_stand_in_another_order(tmp_path: Path) -> None:
    path = tmp_path / "e.tsv"
    order = [*COLUMNS[1:], "index"]
    pd.DataFrame([row(0)])[order].to_csv(path, sep="\t", index=False, quoting=csv.QUOTE_ALL)
    sample = from_endobench(path).sample(0)
    assert sample.image is not None
    assert sample.id == "0"


def test_parquet_holds_the_same(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    rows = [row(k) for k in range(5)]
    plain = from_endobench(write(tmp_path / "e.tsv", rows))
    coded = pd.DataFrame(rows, columns=COLUMNS)
    raw = coded.assign(image=[{"bytes": base64.b64decode(r["image"]), "path": ""} for r in rows])
    for name, table in (("coded", coded), ("raw", raw.assign(E=None, F=None))):
        shards = [tmp_path / f"{name}{k}.parquet" for k in range(2)]
        table[:3].to_parquet(shards[0], row_group_size=2)
        table[3:].to_parquet(shards[1])
        found = from_endobench(shards)
        assert found.fingerprint == plain.fingerprint
        for k in range(5):
            np.testing.assert_array_equal(found.sample(k).image, plain.sample(k).image)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"answer": "E"}, "row 2: expected an answer from A to D, got 'E'"),
        ({"answer": "AB"}, "row 2: expected an answer from A to D, got 'AB'"),
        ({"answer": ""}, "row 2: expected something in column 'answer', got nothing"),
        ({"image": "no base64!"}, "row 2: expected an image in base64"),
        ({"image": base64.b64encode(b"text").decode()}, r"row 2: expected an image \(JPEG, PNG"),
        ({"image": ""}, r"row 2: expected an image \(JPEG, PNG"),
        ({"index": "0"}, "row 2: the index '0' stands twice"),
        ({"C": ""}, r"row 2: expected the options A, B and so on, got \['A', 'B', 'D'\]"),
        ({"B": "", "C": "", "D": ""}, r"row 2: expected the options .* got \['A'\]"),
    ],
)
def test_malformed_rows_are_named(tmp_path: Path, cells: dict[str, str], message: str) -> None:
    path = write(tmp_path / "e.tsv", [row(0), row(1, **cells), row(2)])
    with pytest.raises(InputError, match=message):
        from_endobench(path)
    kept = from_endobench(path, broken="skip")
    assert [kept.sample_id(k) for k in range(len(kept))] == ["0", "2"]
    assert len(kept.skipped) == 1
    assert "row 2" in kept.skipped[0]
    assert kept.sample(1).image is not None


def test_a_row_with_too_few_columns_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "e.tsv", [row(k) for k in range(3)])
    lines = path.read_text().splitlines()
    lines[2] = lines[2].rpartition("\t")[0]
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match="row 2: expected 17 columns, got 16"):
        from_endobench(path)


def test_an_image_over_the_limit_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adaptive_vtt.datasets.formats.image_rows.MAX_PIXELS", 2000)
    path = write(tmp_path / "e.tsv", [row(0), row(1, image=picture(1, 50))])
    sentence = "row 2: the image is 50 x 50 pixels, over the limit of 2000 pixels$"
    with pytest.raises(InputError, match=sentence):
        from_endobench(path)


def test_files_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read a table"):
        from_endobench(tmp_path / "none.tsv")
    other = tmp_path / "other.tsv"
    other.write_text("index\tpicture\n1\tx\n")
    with pytest.raises(InputError, match="unknown column 'image'"):
        from_endobench(other)
    with pytest.raises(InputError, match="unknown value of broken 'drop'"):
        from_endobench(other, broken="drop")  # type: ignore[arg-type]


def test_only_the_place_of_an_image_is_kept(tmp_path: Path) -> None:
    """Memory does not follow the images: none is held after reading."""
    import tracemalloc

    big = [row(k, image=picture(k, 400)) for k in range(20)]
    path = write(tmp_path / "e.tsv", big)
    size = path.stat().st_size
    del big
    tracemalloc.start()
    dataset = from_endobench(path)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(dataset) == 20
    assert held < size / 10
    assert peak < size / 2


# -- names and numbers ------------------------------------------------------------------


def test_names_are_found_however_they_are_spelt(tmp_path: Path) -> None:
    assert named("lesion QUANTIFICATION") == named("LQ") == named("polyp counting")
    assert named("capsule endoscopy") == named("CE") == "Capsule Endoscopy"
    assert named("Something else ") == "Something else"
    rows = [row(0, task="organ identification"), row(1, task="my own task")]
    path = write(tmp_path / "e.tsv", rows)
    assert from_endobench(path).concepts == ("Organ Identification", "my own task")
    assert from_endobench(path, tasks=["oi"]).concepts == ("Organ Identification",)
    with pytest.raises(InputError, match="unknown task 'OJ'"):
        from_endobench(path, tasks=["OJ"])
    with pytest.raises(InputError, match="no question of the task 'Visual Grounding'"):
        from_endobench(path, tasks=["VG"])


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
    assert clopper_pearson(right, asked, 0.95) == pytest.approx((lower, upper), abs=1e-4)
    exact = binomtest(right, asked).proportion_ci(0.95, method="exact")
    assert clopper_pearson(right, asked, 0.95) == pytest.approx((exact.low, exact.high))


def test_counts_add_up() -> None:
    assert counts()["overall"] == 6832
    assert sum(task.questions for task in TASKS) == 6832
    assert sum(count for _, count in SCENES.values()) == 6832
    assert (len(TASKS), len({t.category for t in TASKS})) == (12, 4)
    for task in TASKS:
        assert not task.subtasks or sum(n for _, _, n in task.subtasks) == task.questions


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


# -- audits -----------------------------------------------------------------------------


class Clever:
    """Right about the first task, wrong about the second, and refuses the third."""

    answers = "one"
    name = "clever"

    def ask(self, prompts: Sequence[Prompt]) -> list[Any]:
        replies = {TASKS[0].name: "(B) two", TASKS[1].name: "C"}
        refusal = "I'm sorry, but I can't assist with that."
        assert all(prompt.asks[0].options for prompt in prompts)
        return [Answer((replies.get(p.concepts[0], refusal),), 1.0) for p in prompts]


def test_an_audit_certifies_tasks_and_groups(tmp_path: Path) -> None:
    dataset = from_endobench(write(tmp_path / "e.tsv", [row(k) for k in range(12)]))
    space = avtt.QuestionSpace(dataset, oracle=MultipleChoice())
    targets = ["concepts", "group:subtask", "group:scene", "group:prompt", "overall"]
    audit = avtt.Audit(
        space,
        Clever(),
        strategy="random",
        budget=99,
        half_width=0.05,
        targets=targets,
        seed=1,
        surrogate=False,
    )
    result = audit.run()
    found = result.targets.set_index("target")["estimate"]
    assert found[f"{TASKS[0].name}: error rate"] == pytest.approx(0)
    assert found[f"{TASKS[1].name}: error rate"] == pytest.approx(1)
    assert found["overall error"] == pytest.approx(8 / 12)  # the micro average
    assert found["prompt image-level: error"] == pytest.approx(8 / 12)
    answers = [row for call in audit.journal.calls() for row in call.answers]
    assert sum((a.unanswered or "").startswith("refused: ") for a in answers) == 4
    beside = compare(result).set_index(["kind", "what"])
    assert beside.loc[("task", TASKS[0].name), "accuracy"] == pytest.approx(1)
    assert beside.loc[("task", TASKS[0].name), "GPT-4o"] == 0.4416
    assert beside.loc[("overall", "overall"), "Gemini-2.5-Pro"] == 0.4953
    assert ("scene", "Gastroscopy") in beside.index


def test_questions_about_coordinates_do_not_count_where_the_picture_moves(tmp_path: Path) -> None:
    boxes = {"A": "[1, 2, 9, 9]", "B": "[3, 4, 8, 9]", "C": "[5, 5, 9, 9]", "D": "[0, 0, 4, 4]"}
    rows = [row(0, **boxes), row(1)]
    dataset = from_endobench(write(tmp_path / "e.tsv", rows))
    oracle = MultipleChoice()
    space = avtt.QuestionSpace(dataset, relations=["reduction", "gaussian_noise"], oracle=oracle)
    spoilt = {}
    for number in space.nth(np.arange(space.size)).tolist():
        question = space.question(number)
        sample, follow_up = space.pair(int(space.image_of(number)), 0)
        relation = space.variants[int(space.parts(number)[1])].relation
        expected = oracle.expect(relation, follow_up, sample, question, None)
        outcome = oracle.judge(question, "B", expected)
        spoilt[question.sample_id, relation.name] = outcome.excluded is not None
    moved = {name for (sample, name), bad in spoilt.items() if bad}
    assert moved
    assert "gaussian_noise" not in moved
    assert not any(bad for (sample, _), bad in spoilt.items() if sample == "1")


def test_features_tell_questions_apart(tmp_path: Path) -> None:
    from adaptive_vtt.surrogates.features import sample_features

    rows = [row(k) for k in range(9)] + [row(9, C="", D="")]
    path = write(tmp_path / "e.tsv", rows)
    dataset = from_endobench(path)
    assert dataset.features is not None
    assert dataset.features[9, -1] == 0.5  # the error of guessing
    assert dataset.features[0, -1] == 0.75
    import torch

    made = sample_features(dataset, 0)(torch.arange(10))
    assert torch.linalg.norm(made[0] - made[6]) < torch.linalg.norm(made[0] - made[1])
    looks = from_endobench(path, looks=True)
    assert looks.features is not None
    assert looks.features.shape[1] == dataset.features.shape[1] + 192


def test_the_benchmark_certifies_every_task() -> None:
    from adaptive_vtt.experiments.endobench_tasks import Task, run, space

    assert space().size == 6832
    found = run(Task("GPT-4o", "adaptive", 0.3, seed=0))
    assert found["certified"]
    assert found["covered"]
    assert sum(found[task.name] for task in TASKS) == found["calls"] < 2000


def test_guessing_among_the_options_is_what_is_expected_at_first(tmp_path: Path) -> None:
    rows = [row(0, C="", D="", answer="A"), row(3)]
    dataset = from_endobench(write(tmp_path / "e.tsv", rows))
    made = avtt.QuestionSpace(dataset, oracle=MultipleChoice())
    proxies = Proxies(made, 0, {})
    assert proxies.names == ["guessing"]
    questions = np.sort(made.nth(np.arange(made.size)))
    parts = (torch.from_numpy(p) for p in made.parts(questions))
    found = proxies(*parts, torch.from_numpy(made.truth(questions)))[:, 0]
    assert found.tolist() == [0.5, 0.75]
    audit = avtt.Audit(made, ScriptedModel(answers="one"), half_width=0.2, targets=["overall"])
    assert audit.journal.facts()["settings"]["proxies"] == ["guessing"]
    assert audit.result().scoring == "exact"


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
