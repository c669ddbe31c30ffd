"""Data, labels and models in whatever form they are at hand, and an audit of them in one line."""

import inspect
from contextlib import closing
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest
from PIL import Image

import adaptive_vtt as avtt
from adaptive_vtt.audit.one_line import questions
from adaptive_vtt.datasets import as_dataset, from_table, recognised
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.journal import read_journal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.journal.files import JOURNAL
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from tests.helpers.command_line import run as command

pytestmark = pytest.mark.usefixtures("undrawn")

CLASSES = ("cat", "dog", "emu")
QUICK: dict[str, Any] = {"budget": 6, "half_width": 0.2, "sample": True, "surrogate": False}
QUICK |= {"self_taught": False, "on_progress": False, "seed": 1}


def picture(path: Path, grey: int = 100) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), np.full((8, 10, 3), grey, np.uint8))
    return path


def class_folders(root: Path, count: int = 2) -> Path:
    for number, name in enumerate(CLASSES):
        for image in range(count):
            picture(root / name / f"{name}{image}.png", 60 * number)
    return root


def table(root: Path, rows: pd.DataFrame, images: str = "images") -> Path:
    for name in rows.iloc[:, 0]:
        picture(root / images / (name if name.endswith(".png") else f"{name}.png"))
    rows.to_csv(root / "labels.csv", index=False)
    return root / "labels.csv"


def classify(images: list[Any]) -> list[str]:
    return [CLASSES[round(float(image.mean()) / 60) % 3] for image in images]


BINARY = pd.DataFrame(
    {"id": ["a", "b", "c", "d"], "bright": [0, 1, 1, 0], "round": [1, "", 0, 1], "site": [*"xyxy"]}
)
NAMED = pd.DataFrame(
    {
        "file": [f"{n}.png" for n in "abcdef"],
        "label": ["cat", "dog", "cat", "emu", "dog", "emu"],
        "age": [3, 4, 3, 5, 6, 7],
    }
)


# -- what a path holds -----------------------------------------------------------------


@pytest.mark.parametrize("given", ["folder", "file"])
def test_a_table_is_read_by_what_its_columns_hold(tmp_path: Path, given: str) -> None:
    path = table(tmp_path, BINARY)
    layout = recognised(path if given == "file" else tmp_path)
    assert (layout.kind, layout.path) == ("table", path)
    assert layout.options == {
        "images": tmp_path / "images",
        "id_column": "id",
        "concepts": ["bright", "round"],
        "metadata": ["site"],
    }
    dataset = layout.load()
    assert dataset.truth(np.arange(4), np.array(1)).tolist() == [1, -1, 0, 1]


def test_what_is_none_of_these_is_said_with_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected one folder of images per class.*got none"):
        recognised(tmp_path)
    with pytest.raises(InputError, match="nothing: it does not exist"):
        recognised(tmp_path / "nowhere")
    (tmp_path / "a.csv").write_text("id,words\n1,aa\n2,bb\n")
    with pytest.raises(InputError, match=r"a column of 0 and 1, or yes and no.*class_column"):
        recognised(tmp_path)
    for split in ("train", "test"):  # not two classes
        picture(tmp_path / "splits" / split / "one.png")
    with pytest.raises(InputError, match="expected one folder of images per class"):
        recognised(tmp_path / "splits")


# -- images and labels in memory -------------------------------------------------------


def test_labels_are_arrays_classes_or_a_series() -> None:
    images = [np.zeros((4, 4), np.uint8)] * 3
    assert from_table(images, np.array([[0, 1], [1, 0], [1, np.nan]])).concepts == ("0", "1")
    one = from_table(images, [1, 0, np.nan])
    assert (one.concepts, one.counts.tolist()) == (("label",), [[1, 1]])
    assert from_table(images, pd.Series([0, 1, 1], name="ill")).concepts == ("ill",)
    three = from_table(images, ["b", "a", None])
    assert (three.concepts, three.counts.tolist()) == (("a", "b"), [[1, 1], [1, 1]])
    with pytest.raises(InputError, match=r"expected a table n x C .* got shape \(3, 1, 1\)"):
        from_table(images, np.zeros((3, 1, 1)))


def test_pil_images_look_as_a_viewer_shows_them() -> None:
    red = Image.new("RGBA", (6, 4), (255, 0, 0, 0))
    red.putpixel((5, 3), (255, 0, 0, 255))
    turned = Image.new("RGB", (6, 4), (1, 2, 3))
    turned.getexif()[0x0112] = 6
    sources = [Image.new("L", (6, 4), 7), red, turned.convert("P"), Image.new("I;16", (6, 4))]
    dataset = from_table([*sources, turned], [0, 1, 0, 1, 0])
    shown = [dataset.sample(i).require_image() for i in range(5)]
    grey, colour = (4, 6, 1), (4, 6, 3)
    assert [image.shape for image in shown] == [grey, colour, colour, grey, (6, 4, 3)]
    assert shown[0].max() == 7
    assert shown[1].reshape(-1, 3)[[0, -1]].tolist() == [[0, 0, 0], [255, 0, 0]]
    assert shown[4][0, 0].tolist() == [1, 2, 3]


def test_a_table_in_memory_names_its_images(tmp_path: Path) -> None:
    rows = NAMED.assign(file=[str(picture(tmp_path / name)) for name in NAMED["file"]])
    dataset = as_dataset(rows)
    assert (dataset.concepts, dataset.sample_id(0)) == (CLASSES, "a.png")
    assert dataset.metadata_values("age").tolist() == [3, 4, 3, 5, 6, 7]
    with pytest.raises(InputError, match="expected a column of image files"):
        as_dataset(NAMED)


def test_images_without_labels_are_asked_about_whatever_the_model_answers() -> None:
    images = np.zeros((3, 4, 4), np.uint8)
    assert as_dataset(images).concepts == ("image",)
    assert as_dataset(images, concepts=["a", "b"]).counts.sum() == 0
    with pytest.raises(InputError, match=r"data: expected a Dataset, a folder.* got int"):
        as_dataset(3)


# -- models ----------------------------------------------------------------------------


def run(model: Any, concepts: int = 2, **options: Any) -> Any:
    space = avtt.QuestionSpace(tiny_dataset(concepts=concepts))
    return avtt.Audit(space, model, budget=4, **options).run()


def test_functions_modules_names_and_tables_are_models(tmp_path: Path) -> None:
    import torch

    assert run(lambda images: np.full((len(images), 2), 0.7)).calls == 4
    pixels = tiny_dataset().sample(0).require_image().size
    assert run(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(pixels, 2))).calls == 4
    (tmp_path / "mine.py").write_text("def says(images):\n    return [[0.5, 0.5]] * len(images)\n")
    assert run(f"{tmp_path / 'mine.py'}:says").calls == 4
    data = tiny_dataset()
    ids = [data.sample_id(i) for i in range(len(data))]
    assert run(pd.DataFrame(0.5, index=ids, columns=[*data.concepts])).calls == 4


def test_one_number_per_image_will_do_for_one_concept_and_names_for_classes(tmp_path: Path) -> None:
    assert run(lambda images: np.full(len(images), 0.7), concepts=1).calls == 4
    space = avtt.QuestionSpace(class_folders(tmp_path), oracle=avtt.oracles.TopClass())
    assert avtt.Audit(space, classify).run().targets["estimate"][0] == 0
    with pytest.raises(ModelError, match=r"'<lambda>': unknown class 'cow': expected one of cat"):
        avtt.Audit(space, lambda images: ["cow"] * len(images)).run()


def test_what_is_no_model_is_said_before_anything_is_asked() -> None:
    with pytest.raises(InputError, match=r"expected a callable, a torch module .* got int"):
        run(3)
    with pytest.raises(InputError, match=r"class ScriptedModel; name an object made of it"):
        run(ScriptedModel)
    with pytest.raises(ModelError, match=r"of shape \(1, 2\) .*got shape \(1, 3\)"):
        run(lambda images: np.zeros((len(images), 3)))


# -- in one line -----------------------------------------------------------------------


def test_what_is_asked_and_certified_follows_from_what_is_known(tmp_path: Path) -> None:
    images = np.zeros((4, 4, 4), np.uint8)
    rates = np.array([[0, 1], [1, 1], [0, 0], [1, 0]])
    expected = {
        "Consistency": (as_dataset(images), ("overall", "relations")),
        "Correctness": (from_table(images, rates), ("overall", "relations")),
        "TopClass": (as_dataset(class_folders(tmp_path)), ("overall", "relations")),
        "MaskDrop": (
            from_table(images, [1, 1, 1, 1], masks={"label": [np.eye(4, dtype=bool)] * 4}),
            ("concepts", "relation-sides"),
        ),
    }
    for oracle, (dataset, targets) in expected.items():
        found = questions(dataset)
        assert (type(found.space.oracle.original).__name__, found.targets) == (oracle, targets)
    relations = {v.relation.name for v in found.space.variants}
    assert relations == {"identity", "gaussian_noise", "brightness_down", "rotation"}
    assert len(questions(from_table(None, rates)).space.variants) == 1
    assert questions(from_table(images, rates), oracle="consistency").targets[0] == "overall"


@pytest.mark.parametrize("kind", ["classes", "table", "masks", "images", "arrays", "dataset"])
def test_every_kind_of_data_in_one_line(tmp_path: Path, kind: str) -> None:
    images = [np.full((8, 10, 3), 40 * k, np.uint8) for k in range(4)]
    data: dict[str, Any] = {
        "classes": lambda: (class_folders(tmp_path), classify),
        "table": lambda: (str(table(tmp_path, BINARY).parent), lambda i: [[0.2, 0.9]] * len(i)),
        "images": lambda: (picture(tmp_path / "a.png").parent, lambda i: np.ones(len(i))),
        "arrays": lambda: (images, lambda i: [x.mean() / 255 for x in i]),
        "dataset": lambda: (tiny_dataset(), ScriptedModel()),
    }
    if kind == "masks":
        for name in ("a", "b"):
            picture(tmp_path / "images" / f"{name}.png")
            picture(tmp_path / "masks" / f"{name}.png", 255)
        found = (tmp_path, lambda i: np.ones((len(i), 1, 8, 10), bool))
    else:
        found = data[kind]()
    labels = [0, 0, 1, 1] if kind == "arrays" else None
    result = avtt.audit(*found, labels=labels, **QUICK)
    assert 0 < result.calls <= 6
    assert result.guarantee is not None


GROUPS: dict[str, Any] = {"on_progress": False, "targets": ["overall", "group:site"]}


def test_groups_are_certified_in_one_line(tmp_path: Path) -> None:
    path = table(tmp_path, BINARY)
    rows, images = pd.read_csv(path), path.parent / "images"
    sites = rows[["id", "site"]].sample(frac=1, random_state=1)
    both, one = (lambda i: [[0.2, 0.9]] * len(i)), (lambda i: [0.2] * len(i))
    folders = class_folders(tmp_path / "classes")
    for data, model, labels, metadata in (
        (images, both, rows, None),
        (images, both, rows, ["site"]),
        (images, both, rows.drop(columns="site"), sites),
        (images, one, None, sites),
        (path, both, None, ["site"]),
        (folders, classify, None, {"site": [*"xyxyxy"]}),
    ):
        result = avtt.audit(data, model, labels=labels, metadata=metadata, **GROUPS)
        assert {name.split(":")[0] for name in result.targets["target"]} > {"site x", "site y"}
    space = avtt.QuestionSpace(tiny_dataset())
    for given, got in ((space, "labels, concepts or metadata, too"), (space.dataset, "metadata")):
        with pytest.raises(InputError, match=rf"data: expected a .* alone, got {got}"):
            avtt.audit(given, ScriptedModel(), metadata=["site"])


# -- going on from the command line ------------------------------------------------------

MODEL = "CLASSES = ('cat', 'dog', 'emu')\n{}\ndef other(images):\n    return classify(images)\n"


def begun_in_python(folder: Path, **options: Any) -> tuple[Path, str]:
    """A run of six calls over class folders, by a path, and what names its model."""
    source = inspect.getsource(classify).replace("Any", "object")
    folder.mkdir(exist_ok=True)
    (folder / "model.py").write_text(MODEL.format(source))
    out = folder / "run"
    avtt.audit(class_folders(folder / "data", 4), classify, out=out, **{**QUICK, **options})
    return out, f"{folder / 'model.py'}:classify"


def test_a_run_made_in_python_goes_on_from_the_command_line(tmp_path: Path, capsys: Any) -> None:
    options = {"relations": ["identity", "rotation"], "on_progress": True}
    out, model = begun_in_python(tmp_path, **options)
    assert capsys.readouterr().err.startswith("preparing: reading your 12 images ...\nread: ")
    assert command("resume", str(out)) == 2
    message = f"the lines of Python that began it, or 'avtt resume {out} --model FILE:NAME'"
    assert message in " ".join(capsys.readouterr().err.split())
    for given, sentence in {
        ("--model", model.replace(":classify", ":other")): "model",
        ("--model", model, "--set", "stop.seconds=9"): "--set stop.seconds: expected budget, max",
        ("--model", model, "--budget", "2"): "budget: expected at least the 6 calls made already",
    }.items():
        assert command("resume", str(out), *given) == 2
        assert sentence in " ".join(capsys.readouterr().err.split())
    assert command("resume", str(out), "--model", model, "--budget", "9") == 0
    assert avtt.read_result(out).calls == 9
    output, errors = capsys.readouterr()
    assert errors.startswith("preparing: reading your data and the answers so far ...\n")
    assert f"avtt resume {out} --model FILE:NAME --budget " in output
    with closing(read_journal(out / JOURNAL)) as journal:
        kept = read_facts(journal.facts()).call
    assert kept is not None
    assert kept["budget"] == 9  # the limit stays
    apart = tmp_path / "apart"
    begun_in_python(apart, relations=["identity", "rotation"], budget=9)
    for name in ("targets", "derived"):  # the same draws, the same intervals
        assert getattr(avtt.read_result(out), name).equals(
            getattr(avtt.read_result(apart / "run"), name)
        )


def test_commands_read_the_data_of_a_run_made_in_python_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    options = {**QUICK, "targets": ["overall", "relations"], "relations": ["rotation", "identity"]}
    wrong: Any = lambda images: [[0.2, 0.2]] * len(images)  # noqa: E731
    path = table(tmp_path, BINARY.assign(round=[1, 1, 0, 1]))
    result = avtt.audit(path, wrong, out="run", **options)
    assert "also" not in result.targets  # which is long, and in result.json
    assert command("export", "run", "--failures", "failures") == 0
    written = pd.read_csv("failures/failures.csv")
    assert len(written) == len(result.failures()) > 0
    assert result.export("again").name == "again"
    assert written.equals(pd.read_csv("again/failures.csv"))
    assert command("export", "run", "--mix", "mix") == 0
    assert set(pd.read_csv("mix/mix.csv")["relation"]) == {"rotation", "identity"}
    assert command("slices", "run", "--most", "2") == 0
    assert command("label", "run", "--questions", "--reader", "ann") == 0
    assert command("rejudge", "run", "--set", "oracle.threshold=0.1", "--out", "strict") == 0
    assert (avtt.read_result("strict").targets["estimate"] != result.targets["estimate"]).any()
    assert command("rejudge", "strict", "--out", "same") == 0  # the oracle's options are kept
    same = avtt.read_result("same").targets
    assert same.equals(avtt.read_result("strict").targets)
    capsys.readouterr()
    path.write_text(path.read_text().replace("a,0", "a,1"))
    assert command("export", "run", "--failures", "changed") == 2
    assert "other" in capsys.readouterr().err


def test_runs_whose_data_were_in_memory_are_exported_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = pd.read_csv(table(tmp_path, BINARY))
    model: Any = lambda images: [[0.2, 0.2]] * len(images)  # noqa: E731
    result = avtt.audit("images", model, labels=rows, out="run", **QUICK)
    assert command("export", "run", "--failures", "failures") == 2
    assert "call result.export(FOLDER)" in " ".join(capsys.readouterr().err.split())
    assert (result.export("failures") / "labels.csv").is_file()
    with pytest.raises(InputError, match=r"expected a result of run\(\), got one read from files"):
        avtt.read_result("run").export("more")


def test_code_of_a_run_made_in_python_is_run_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text("from adaptive_vtt.oracles import Correctness as Own\n")
    model: Any = lambda images: [[0.2, 0.2]] * len(images)  # noqa: E731
    avtt.audit(table(tmp_path, BINARY), model, oracle="own.py:Own", out="run", **QUICK)
    assert command("export", "run", "--failures", "failures") == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "oracle 'own.py:Own' is code, which is not run here; --run-code runs it" in error
    assert command("export", "run", "--failures", "failures", "--run-code") == 0


def test_a_column_that_is_no_target_is_named_as_one(tmp_path: Path) -> None:
    path = table(tmp_path, BINARY)
    with pytest.raises(InputError, match=r"expected 'group:site' for the values of a column, got"):
        avtt.audit(path, ScriptedModel(), targets=["site"], **QUICK)
