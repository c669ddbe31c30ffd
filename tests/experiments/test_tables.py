"""The papers' tables: what they print, and how runs are joined into them."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptive_vtt as avtt
from adaptive_vtt.datasets import from_endobench, from_table
from adaptive_vtt.datasets.vqa.taxonomy import TASKS
from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.experiments.reic.paper_columns import with_paper
from adaptive_vtt.experiments.tables import endobench, medmnistc, medtest, reic
from adaptive_vtt.experiments.tables.__main__ import main
from adaptive_vtt.experiments.tables.layout import Cell, Table, tables_of
from adaptive_vtt.experiments.tables.runs import read_run
from adaptive_vtt.oracles import MaskDrop, MultipleChoice, TopClass
from adaptive_vtt.people.agreement import scores
from adaptive_vtt.people.captions import items
from adaptive_vtt.people.cards import keep
from adaptive_vtt.relations.medmnistc import CATEGORIES
from adaptive_vtt.types import Image
from tests.helpers.captioned import faulty
from tests.helpers.captioned import space as caption_space
from tests.helpers.endobench_rows import Clever, row, write
from tests.helpers.labelled_audit import labels
from tests.helpers.report_kinds import Bright

CLASSES = ["dark", "grey", "light"]
WHOLE: dict[str, Any] = {"strategy": "random", "half_width": 0.001, "surrogate": False}
WHOLE |= {"self_taught": False}


def shown(tables: Sequence[Table], name: str) -> pd.DataFrame:
    """One table as it is printed, indexed by the names of its rows."""
    (table,) = (t for t in tables if t.name == name)
    return table.frame().set_index(list(table.levels))


# -- what the papers print -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tables", "name", "row", "column", "cell"),
    [
        (medtest, "medtest-3-6", ("PraNet", "White Balance"), "CVC-ColonDB, IoU", "16.9"),
        (medtest, "medtest-7-10", ("SANet", "Blur"), "Kvasir, IoU", "2.0"),
        (medtest, "medtest-13", ("GPT-4V", "Are there any instruments", ""), "Instrument", "0.312"),
        (medtest, "medtest-14", ("GPT-4V", "Average", ""), "Average Perturbation", "0.617"),
        (medtest, "medtest-16", ("GPT-4V", "Average", ""), "Difference", "0.022"),
        (medtest, "medtest-17-18", ("AGDN", "White Balance", ""), "Cohen's kappa", "0.226"),
        (medtest, "medtest-19-21", ("PraNet", "Blur"), "CVC-300, Dice, After", "0.872"),
        (medtest, "medtest-22-23", ("AGDN", "White Balance", ""), "Difference", "0.141"),
        (medmnistc, "medmnistc-2", ("ResNet50",), "rBE", "166.1"),
        (medmnistc, "medmnistc-2", ("VGG16",), "digital", "128.0"),
        (medmnistc, "medmnistc-3", ("ours (k-F)",), "AVG", "4.0"),
        (endobench, "endobench-2", ("GPT-4o",), "overall", "41.69"),
        (endobench, "endobench-3", ("Gemini-2.5-Pro",), "GS", "57.29"),
        (endobench, "endobench-5", ("Gemini-2.5-Pro",), "IC", "62.81"),
        (endobench, "endobench-6", ("EndoBench", "Zero-shot CoT"), "Gemini-2.5-Pro", "61.67"),
        (reic, "reic-I", ("MSCOCO", "object", "Oscar", "crop"), "accuracy", "94.7"),
        (reic, "reic-II", ("PASCAL", "VinVL", "ROME"), "violations", "26"),
        (reic, "reic-IV", ("Show and Tell", "crop", "REIC"), "distinct objects", "354"),
        (reic, "reic-VI", ("2.2",), "VinVL (paper), rotate", "211"),
        (reic, "reic-VIII", ("localisation",), "seconds", "2.620"),
    ],
)
def test_cells_are_those_of_the_papers(
    tables: Any, name: str, row: tuple[str, ...], column: str, cell: str
) -> None:
    (table,) = (t for t in tables.tables([], []) if t.name == name)
    frame = table.frame()
    names = frame[list(table.levels)].agg(" | ".join, axis=1).str.replace(" (paper)", "")
    rows = frame[[all(part in words for part in row) for words in names]]
    if len(rows) > 1:  # names that others contain
        rows = frame[names == " | ".join(row)]
    assert rows[column].item() == cell


def test_headline_rates_are_the_tables_weighted_by_the_sizes_of_sets() -> None:
    """4.38, 1.70, 15.70 and 1.47 % in the thesis's abstract; 2.25, .86, 7.98 and .93 at 0.5."""
    sizes = {"CVC-300": 60, "CVC-ClinicDB": 612, "CVC-ColonDB": 380, "Kvasir": 1000}
    for name, rates in (
        ("medtest-7-10", (4.38, 1.70, 15.70, 1.47)),
        ("medtest-3-6", (2.25, 0.86, 7.98, 0.93)),
    ):
        frame = shown(medtest.tables([], []), name)
        dice = frame[[f"{s}, Dice" for s in sizes]].astype(float)
        weighted = (dice * list(sizes.values())).sum(axis=1) / sum(sizes.values())
        means = weighted.groupby(level="model", sort=False).mean()
        np.testing.assert_allclose(means, rates, atol=0.015)
        iou = frame[[f"{s}, IoU" for s in sizes]].astype(float)
        assert (dice.to_numpy() <= iou.to_numpy()).all()


def test_endobench_accuracies_are_whole_numbers_of_questions() -> None:
    """Holds only with the corrected names; and the overall figures are micro averages."""
    table = tables_of("endobench")["2"].published().droplevel("set") / 100
    tested, size = table.drop(index=["Physician", "Random"]), {t.short: t.questions for t in TASKS}
    right = tested[list(size)] * pd.Series(size)
    away = (right - right.round()).abs() / pd.Series(size)
    assert float(away.max().max()) < 1.01e-4
    whole = tested.dropna()
    assert len(whole) >= 12
    micro = (whole[list(size)] * pd.Series(size)).sum(axis=1) / 6832
    np.testing.assert_allclose(micro, whole["overall"], atol=1.1e-4)


def test_physicians_are_the_published_percentages_with_intervals() -> None:
    frame = shown(endobench.tables([], []), "endobench-2")
    row = frame.loc[("Physician (paper)", "EndoBench")]
    assert row["overall"].split()[0] == "74.12"  # 189 of 255
    assert row["LI"] == "93.33 (68.05 to 99.84)"  # 14 of 15
    assert row["MO"].split()[0] == "77.14"


def test_reics_tables_agree_with_one_another() -> None:
    paper = {number: table.published() for number, table in tables_of("reic").items()}
    cases = paper["I"]
    for each in cases.itertuples():
        result = scores(each.TP, each.FP, each.FN, each.TN)
        assert result["f1"] is not None
        assert 100 * result["f1"] == pytest.approx(each.F1, abs=0.11)
    for (images, model, method), each in paper["II"].iterrows():
        if method.startswith("REIC"):
            row = cases.loc[(images, "case", model, method.removeprefix("REIC, "))]
            assert row["TP"] == each["violations"]
            assert row[["TP", "FN", "FP", "TN"]].sum() == each["follow-ups"] == 900
    for (model, relation, setting), each in paper["III"].iterrows():
        if setting == "REIC":
            row = cases.loc[("MSCOCO", "object", model, relation)]
            assert row["TP"] + row["FP"] == each["reported"]


@pytest.mark.parametrize(
    ("number", "row", "expected"),
    [
        ("V", {"relation": "crop", "oracle": "literal words", "F1": 50}, {"F1": "60.7-71.8"}),
        ("V", {"relation": "all", "oracle": "literal words", "F1": 60}, {"F1": ""}),
        ("VI", {"error": "3", "crop": 6, "stretch": 6, "rotate": 1}, {"crop": "24-49"}),
        ("II", {"method": "ROME"}, {"eligible": "150-256"}),
    ],
)
def test_drawn_scenes_get_the_range_of_the_paper(
    number: str, row: dict[str, Any], expected: dict[str, str]
) -> None:
    result = with_paper(number, pd.DataFrame([row])).iloc[0]
    assert {name: result[f"paper: {name}"] for name in expected} == expected


def test_retrained_means_are_those_of_the_thesis() -> None:
    table = medtest.retrained("classification")
    assert table.loc["medtest/blur"].tolist() == pytest.approx([0.7995, 0.863], abs=0.001)
    table = medtest.retrained("segmentation")
    assert table.loc["medtest/blur", "paper: Dice before"] == pytest.approx(0.754, abs=0.001)
    assert "average" in table.index


# -- joined with runs ------------------------------------------------------------------------------


def predict(batch: Sequence[Image]) -> np.ndarray:
    means = np.array([image.mean() for image in batch])
    return np.exp(-(((means[:, None] - [40, 110, 190]) / 40) ** 2)).clip(0.01, 0.99)


def classified(relations: Sequence[str], seed: int = 0) -> avtt.QuestionSpace:
    rng = np.random.default_rng(seed)
    kinds = np.arange(6) % 3
    images = [rng.integers(60 * k, 60 * k + 130, (16, 16, 3), dtype=np.uint8) for k in kinds]
    names = pd.DataFrame(np.eye(3, dtype=int)[kinds], columns=CLASSES)
    return avtt.QuestionSpace(
        from_table(images, names), relations, severities=[0, 3], oracle=TopClass()
    )


def audited(space: avtt.QuestionSpace, model: Any, folder: Path, **options: Any) -> str:
    folder.mkdir()
    with avtt.Audit(space, model, journal=folder / "journal.db", **{**WHOLE, **options}) as audit:
        audit.run()
    return str(folder)


def counted(space: avtt.QuestionSpace, model: Any, folder: Path) -> str:
    options: Any = {"strategy": "everything", "journal": folder / "journal.db"}
    with avtt.Audit(space, model, **options) as audit:
        audit.run()
    return str(folder)


def test_medtest_joins_an_audit_and_a_census_of_classifiers(tmp_path: Path) -> None:
    space = classified(["identity", "medtest/contrast", "medtest/saturation"])
    audit = audited(space, predict, tmp_path / "a", targets=["relation-sides"])
    census = counted(space, predict, tmp_path / "c")
    runs = [read_run(f"{audit}=sampled@one"), read_run(f"{census}=whole@two")]
    frame = shown(medtest.tables(runs, []), "medtest-17-18")
    first, second = frame.loc["sampled", "one"], frame.loc["whole", "two"]
    assert first.index.tolist() == ["Original", "Saturation", "Contrast", "Average"]
    for figure in ("Accuracy", "Cohen's kappa", "Precision", "Recall", "F1"):
        assert first[figure].tolist() == second[figure].tolist()
    assert (second["Accuracy"] != "–").all()
    pairs = medtest.tables(runs[:1], [read_run(f"{census}=sampled@one")])
    changed = shown(pairs, "medtest-22-23").loc["sampled", "one"]
    assert set(changed["Difference"]) == {"0.000"}
    assert changed["Initial"].tolist() == first["Accuracy"].tolist()


def test_medtest_joins_sets_and_metrics_of_segmenters(tmp_path: Path) -> None:
    relations = ["medtest/blur", "medtest/contrast"]
    runs = []
    for metric in ("dice", "iou"):
        dataset = phantoms.frames(4, size=64, polyps="always", concepts=["polyp"])
        space = avtt.QuestionSpace(dataset, relations, severities=[3], oracle=MaskDrop(metric))
        targets = ["relation-sides", "relations"]
        folder = audited(space, Bright(), tmp_path / metric, targets=targets)
        runs.append(read_run(f"{folder}=bright@frames"))
    tables = medtest.tables(runs, [])
    for name in ("medtest-3-6", "medtest-7-10"):
        mine = shown(tables, name).loc["bright"]
        assert mine.index.tolist() == ["Contrast", "Blur"]
        assert set(mine[["frames, Dice", "frames, IoU"]].to_numpy().ravel()).isdisjoint({"–"})
        assert set(mine["Kvasir, Dice"]) == {"–"}
    after = shown(medtest.tables(runs, runs), "medtest-19-21").loc["bright"]
    assert after["frames, Dice, Before"].tolist() == after["frames, Dice, After"].tolist()
    assert "Average" in after.index
    with pytest.raises(
        InputError, match=r"another run has the cell bright, Contrast, frames, Dice"
    ):
        medtest.tables([runs[0], runs[0]], [])


def test_a_comparison_is_a_difference_of_accuracies(tmp_path: Path) -> None:
    labels = pd.DataFrame({"here": [0, 1] * 6})
    images = [np.full((16, 16, 3), 60 + 10 * k, np.uint8) for k in range(12)]
    space = avtt.QuestionSpace(from_table(images, labels), ["identity", "medtest/contrast"])

    def right(batch: Sequence[Image]) -> list[list[float]]:
        return [[0.9]] * len(batch)

    def wrong(batch: Sequence[Image]) -> list[list[float]]:
        return [[0.4]] * len(batch)

    folder = tmp_path / "v"
    folder.mkdir()
    options: dict[str, Any] = {"targets": ["relations"], "surrogate": False, "seed": 1}
    journal = folder / "journal.db"
    with avtt.Versus(space, wrong, right, margin=0.9, **options, journal=journal) as versus:
        versus.run()
    frame = shown(medtest.tables([read_run(f"{folder}=new@ours")], []), "medtest-22-23")
    assert frame.loc[("new", "ours")].index.tolist() == ["Original", "Contrast"]
    assert all("to" in cell for cell in frame.loc[("new", "ours"), "Difference"])
    with pytest.raises(InputError, match=f"{folder}: expected balanced accuracy under MedMNIST-C"):
        medmnistc.tables([read_run(str(folder))], [])


def test_medmnistc_joins_sets_of_a_model_and_means_them(tmp_path: Path) -> None:
    runs = []
    for flag in ("octmnist", "retinamnist"):
        names = [f"medmnistc/{flag}/{name}" for name in ("pixelate", "jpeg_compression")]
        space = classified(["identity", *names])
        runs.append(read_run(f"{counted(space, predict, tmp_path / flag)}=net@{flag}"))
    audit = audited(space, predict, tmp_path / "audit", targets=["relation-sides"])
    runs.append(read_run(f"{audit}=again@retinamnist"))
    tables = medmnistc.tables(runs, [])
    frame = shown(tables, "medmnistc-2")
    mine = frame.loc["net"].replace("–", None).astype(float)
    assert mine.index.tolist() == ["octmnist", "retinamnist", "mean of 2 sets"]
    known = mine.dropna(axis=1)
    assert known.columns.tolist() == ["bACC clean", "bACC corrupted", "rBE", "BE", "digital"]
    both = known.iloc[:2].mean()
    assert known.loc["mean of 2 sets"].tolist() == pytest.approx(both.tolist(), abs=0.11)
    assert (
        frame.loc[("again", "retinamnist")].tolist() == frame.loc[("net", "retinamnist")].tolist()
    )
    areas = shown(tables, "medmnistc-3").loc["net"]
    assert float(areas["AVG"]) == pytest.approx(
        (float(areas["octmnist"]) + float(areas["retinamnist"])) / 2, abs=0.11
    )
    gains = shown(medmnistc.tables(runs[:1], [runs[0]]), "medmnistc-3").loc["net, gain"]
    assert gains["octmnist"] == "0.0"


def test_be_is_the_balanced_error_over_alexnets(tmp_path: Path) -> None:
    space = classified(["identity", "medmnistc/octmnist/pixelate"])
    run = read_run(counted(space, predict, tmp_path / "c"))
    base = medmnistc.baseline("medmnistc/octmnist/pixelate")
    assert base is not None
    clean, changed = (figures["balanced accuracy"].estimate for figures in run.figures.values())
    (row,) = medmnistc.tables([run], [])[0].ours.values()
    assert row[("BE",)].estimate == pytest.approx((1 - changed) / base.corrupted)
    rise = (clean - changed) / (base.corrupted - base.clean)
    assert row[("rBE",)].estimate == pytest.approx(rise)


def test_endobench_joins_two_models(tmp_path: Path) -> None:
    dataset = from_endobench(write(tmp_path / "e.tsv", [row(k) for k in range(12)]))
    space = avtt.QuestionSpace(dataset, oracle=MultipleChoice())
    targets = ["overall", "concepts", "group:scene", "group:prompt", "group:subtask"]
    audit = audited(space, Clever(), tmp_path / "a", targets=targets)
    census = counted(space, Clever(), tmp_path / "c")
    runs = [read_run(f"{audit}=one@ours"), read_run(f"{census}=two@ours")]
    tables = endobench.tables(runs, [])
    for name in ("endobench-2", "endobench-3"):
        frame = shown(tables, name)
        assert frame.loc[("one", "ours")].tolist() == frame.loc[("two", "ours")].tolist()
    tasks = shown(tables, "endobench-2").loc[("one", "ours")]
    shorts = [task.short for task in TASKS[:3]]
    assert tasks[["overall", *shorts]].tolist() == ["33.33", "100.00", "0.00", "0.00"]
    direct = shown(tables, "endobench-6").loc[("ours", "Direct inference")]
    assert direct[["one", "two"]].tolist() == ["33.33", "33.33"]


@pytest.mark.slow
def test_reic_joins_captioners_with_peoples_verdicts(tmp_path: Path) -> None:
    runs = []
    for name in ("a", "b"):
        folder = audited(caption_space(), faulty(), tmp_path / name, half_width=0.3, budget=40)
        run = read_run(f"{folder}={name}@scenes")
        with run.journal() as journal:
            result = items(journal)
        given = [(item, "ann", item.card.asked[0].suggested or "3") for item in result]
        keep(Path(folder) / "labels", labels(*given))
        runs.append(run)
    tables = reic.tables(runs, [])
    verdicts = shown(tables, "reic-I").loc["scenes"]
    assert set(verdicts.index.get_level_values("model")) == {"a", "b"}
    assert set(verdicts["precision"]) <= {"100.0", "–"}  # where nothing was reported
    counts = shown(tables, "reic-III").loc["a"]
    assert counts.index.get_level_values("relation").tolist() == ["crop", "stretch", "rotate"]


# -- forms and refusals ----------------------------------------------------------------------------


def test_intervals_are_rounded_outward_and_latex_has_none() -> None:
    assert Cell(0.5, 0.4444, 0.5555).text(100, 1, True) == "50.0 (44.4 to 55.6)"
    assert Cell(-0.5, -0.75, 0.25).text(1, 1, True) == "−0.5 (−0.8 to 0.3)"
    assert Cell(0.5, 0.5, 0.5).text(1, 3, True) == "0.500"
    assert Cell(math.nan).text(1, 3, True) == "–"
    content = {"title": "A title", "levels": ["model"], "columns": [["x"]]}
    table = Table("t", content | {"rows": [[["net"], [0.25]]]})
    table.add(("a|b",), ("x",), Cell(0.5, 0.4, 0.6), Path("run"))
    assert table.text("csv").splitlines() == [
        "model,x", "a|b,0.500 (0.400 to 0.600)", "net (paper),0.250"
    ]  # fmt: skip
    assert table.text("markdown").splitlines()[2] == "| a\\|b | 0.500 (0.400 to 0.600) |"
    assert "a|b & 0.500 \\\\" in table.text("latex").replace("\\textbar ", "|")


def test_the_command_prints_writes_and_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["medmnistc", "--format", "markdown", "--out", str(tmp_path / "out")])
    assert "| ResNet50 (paper) | mean of 12 sets | 75.4 |" in capsys.readouterr().out
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {f"medmnistc-{n}.{end}" for n in (2, 3) for end in ("csv", "tex", "md")}
    main(["reic"])
    assert "Show and Tell (paper)" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["medtest", str(tmp_path / "none")])
    assert ended.value.code == 2
    assert "none: expected the folder of a run, found none\n" in capsys.readouterr().err
    space = classified(["identity", "gaussian_noise"])
    folder = audited(space, predict, tmp_path / "a", targets=["relation-sides"])
    with pytest.raises(SystemExit):
        main(["medtest", folder])
    assert f"{folder}: expected rates under MedTest's relations" in capsys.readouterr().err


def test_every_corruption_is_of_one_category() -> None:
    names = tables_of("medmnistc")["2"].published().columns
    assert names[4:].tolist() == list(CATEGORIES)
    members = [name for names in CATEGORIES.values() for name in names]
    assert len(members) == len(set(members)) == 21
