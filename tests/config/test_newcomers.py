"""What a newcomer does wrong: every message says what to write instead, and the obvious works."""

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from adaptive_vtt import QuestionSpace, models
from adaptive_vtt.config import parse_spec, read_spec
from adaptive_vtt.config.building import build_model
from adaptive_vtt.datasets import from_table, read_table
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.models.checking import checked
from adaptive_vtt.models.local.python import PythonModel, TorchModel
from adaptive_vtt.oracles import Consistency
from adaptive_vtt.types import Prompt
from adaptive_vtt.utils.image_codec import png

IMAGE = np.zeros((16, 12, 3), np.uint8)
SAMPLES = 6


def prompts(*concepts: str, images: int = 1) -> list[Prompt]:
    return [Prompt(IMAGE, concepts, f"im-{n}", "identity", 0) for n in range(images)]


def said(model: Any, *concepts: str, images: int = 1) -> Any:
    return [a.values for a in checked(model, prompts(*concepts, images=images))]  # type: ignore[union-attr]


# -- tables -------------------------------------------------------------------------------


def table(folder: Path, columns: dict[str, list[Any]], separator: str = ",") -> Path:
    (folder / "images").mkdir()
    for number in range(SAMPLES):
        (folder / "images" / f"im-{number}.png").write_bytes(png(IMAGE))
    rows = [columns, *zip(*columns.values(), strict=True)]
    text = "\n".join(separator.join(map(str, row)) for row in rows)
    (folder / "labels.csv").write_text(text + "\n")
    return folder / "labels.csv"


NAMES = [f"im-{n}" for n in range(SAMPLES)]
LABELS = [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("columns", "remedy"),
    [
        ({"bright": LABELS, "picture": NAMES}, 'id_column = "picture" in'),
        ({"n": range(6), "file": [f"im-{n}.png" for n in range(6)]}, 'id_column = "file" in'),
        (
            {"id": NAMES, "kind": [*"aabbcc"], "size": [*"ababcc"]},
            "class_column = ... in [dataset]",
        ),
        ({"id": NAMES, "bright": [0.1, 0.7, 0.2, 0.4, 0.3, 0.9]}, "cut probabilities at a thresh"),
        ({"id": NAMES}, "write labels so, or call the column 'class'"),
        ({"id": [*NAMES[:5], "im-9"], "bright": LABELS}, "mend the name, remove the row, or leave"),
        ({"id": LABELS, "photo": NAMES, "bright": LABELS}, 'file_column = "photo" in'),
    ],
)
def test_a_table_that_does_not_fit_is_told_what_to_write(
    tmp_path: Path, columns: dict[str, Any], remedy: str
) -> None:
    expected = rf"(?s)(labels\.csv|sample).*; .*{re.escape(remedy)}"
    with pytest.raises(InputError, match=expected):
        read_table(table(tmp_path, columns), tmp_path / "images")


def test_columns_are_sorted_into_concepts_and_metadata(tmp_path: Path) -> None:
    cells = {"id": NAMES, "age": [40, 50] * 3, "bright": LABELS, "site": [*"ABABAB"]}
    path = table(tmp_path, cells)
    dataset = read_table(path, tmp_path / "images")
    assert (dataset.concepts, dataset.metadata_columns) == (("bright",), ("age", "site"))
    for options in ({"concepts": ["bright"]}, {"metadata": ["site"]}):
        assert read_table(path, **options).metadata_columns == ("age", "site")
    named = read_table(path, concepts=["bright"], metadata=["site"])
    assert (named.metadata_columns, named.remarks["age"]) == (("site",), "left out")
    path.write_text("id,kind\n" + "".join(f"{n},{'ab'[k % 2]}\n" for k, n in enumerate(NAMES)))
    assert read_table(path, tmp_path / "images").concepts == ("a", "b")


def test_folders_and_files_that_are_not_there_are_told_from_empty_ones(tmp_path: Path) -> None:
    labels = table(tmp_path, {"id": NAMES, "bright": LABELS})
    with pytest.raises(
        InputError, match=r"5 more of 6.*imgs' does not exist; did you mean 'images'"
    ):
        read_table(labels, tmp_path / "imgs")
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match=r"none' holds no image \(\.png, \.jpg"):
        read_table(labels, tmp_path / "none")
    with pytest.raises(InputError, match=r"label\.csv: cannot read.*did you mean 'labels\.csv'"):
        read_table(tmp_path / "label.csv")
    (tmp_path / "labels.xlsx").write_bytes(b"PK\x03\x04\xff\xfe")
    with pytest.raises(InputError, match=r"save the spreadsheet as CSV"):
        read_table(tmp_path / "labels.xlsx")
    (tmp_path / "images" / "im-2.png").write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"im-2\.png' is not an image .*broken = 'skip' in"):
        read_table(labels, tmp_path / "images").sample(2)


# -- spaces -------------------------------------------------------------------------------


def test_a_space_without_questions_says_which_relation_or_oracle_makes_some() -> None:
    known = from_table([IMAGE], pd.DataFrame({"bright": [1]}))
    unknown = from_table([IMAGE], pd.DataFrame({"bright": [np.nan]}))
    with pytest.raises(InputError, match=r"Consistency compares .*add one to relations in \[spa"):
        QuestionSpace(known, ["identity"], oracle=Consistency())
    with pytest.raises(InputError, match=r'label is unknown.*kind = "consistency" in \[oracle'):
        QuestionSpace(unknown, ["identity", "rotation"])


# -- answers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([[-3.0, 0.2]], r"between 0 and 1, got -3.0 .*; for logits apply a sigmoid, or say output"),
        ([[97.0, 3.0]], r"got 97.0 .*; for percents divide by 100; for logits"),
        ([[np.nan, 0.2]], r"got nan for sample 'im-0'.*; look for 0 / 0"),
        ([0.3], r"shape \(1, 2\) .*got shape \(1,\); return a row for each image, a column for"),
        ([0.3, 0.4], r"got shape \(2,\); it is given a list of images: return a row for each"),
        ([[0.1, 0.2, 0.7]], r"got shape \(1, 3\); return a row for .* column for each of 'a', 'b'"),
        (None, r"expected an array of shape \(1, 2\) .*got None; does the function return"),
        ([["yes", "no"]], r"expected an array of numbers, got list .*; return numbers, P\(yes\)"),
        ({"a": 0.1, "b": 0.2}, r"got dict .*; return the values in the order of the concepts: 'a'"),
    ],
)
def test_an_answer_that_is_none_says_what_to_return(answer: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        said(PythonModel(lambda _: answer, name="m"), "a", "b")


def test_one_number_per_image_and_tensors_with_gradients_are_taken() -> None:
    assert said(PythonModel(lambda images: [0.3] * len(images)), "a", images=2) == [(0.3,), (0.3,)]
    half = torch.full((1, 2), 0.5, requires_grad=True)
    assert said(PythonModel(lambda _: half), "a", "b") == [(0.5, 0.5)]
    assert said(PythonModel(lambda _: [half[0].bfloat16()]), "a", "b") == [(0.5, 0.5)]
    mask = torch.zeros(1, 1, 16, 12, dtype=torch.bool)
    assert not said(PythonModel(lambda _: mask), "a")[0][0].any()


@pytest.mark.parametrize(("output", "first"), [("logits", 0.0), ("class-logits", -2.0)])
def test_logits_are_taken_where_they_are_announced(output: Any, first: float) -> None:
    """By a sigmoid each, or by a softmax, which is a sigmoid of what is between the two."""
    (values,) = said(PythonModel(lambda _: [[0.0, 2.0]], output=output), "a", "b")
    assert values == pytest.approx([1 / (1 + np.exp(-first)), 1 / (1 + np.exp(-2.0))])


def test_a_torch_module_may_give_probabilities_and_logits_may_be_maps() -> None:
    given = torch.tensor([[0.25, 2.0 / 3]])
    module = torch.nn.Module()
    module.forward = lambda _: given  # type: ignore[method-assign]
    plain = said(TorchModel(module, device="cpu", output="probabilities"), "a", "b")
    assert plain == [pytest.approx((0.25, 2 / 3))]
    assert said(TorchModel(module, device="cpu"), "a", "b") == [
        pytest.approx(torch.sigmoid(given)[0].tolist())
    ]
    maps = np.where(np.arange(12) < 5, -1.0, 1.0) * np.ones((1, 16, 1))
    (mask,) = said(PythonModel(lambda _: [maps], output="logits"), "a")[0]
    assert mask.tolist() == (maps[0] > 0).tolist()


# -- the model's own code -----------------------------------------------------------------


def written(folder: Path, text: str, name: str = "predict") -> str:
    (folder / "model.py").write_text(text)
    sys.modules.pop("avtt_user_model", None)
    return f"{folder / 'model.py'}:{name}"


def test_a_model_that_raises_is_shown_by_its_own_last_line(tmp_path: Path) -> None:
    text = "import numpy as np\n\ndef helper(i):\n    return np.stack([])\n\ndef predict(images):\n"
    target = written(tmp_path, text + "    return [[helper(i)] for i in images]\n")
    place = r"ValueError: need at least one array.* at .*model\.py, line 4, in helper \(asked about"
    with pytest.raises(ModelError, match=place + r".*a list of 1 image, 16 x 12 x 3 uint8"):
        said(models.load(target), "a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def predict(images)\n    return 1\n", r"SyntaxError: .*\(model\.py, line 1\)"),
        ("\nimport nosuchthing\n", r"No module named 'nosuchthing' at .*, line 2; install"),
        ("open('weights.pt')\n", r"weights\.pt' at .*line 1; its path starts at .*__file__"),
        ("import sys\nsys.exit('no GPU')\n", r"cannot import .*SystemExit: no GPU at .*line 2"),
        ("class predict:\n    pass\n", r"got the class predict; name an object made of it"),
        ("predict = 3\n", r"expected a callable.*got int; for a table of answers say kind"),
        ("import numpy\ndef predit(i): ...\n", r"did you mean 'predit'. Expected one of predit"),
    ],
)
def test_a_model_that_cannot_be_imported_is_shown_by_file_and_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        models.load(written(tmp_path, text))


def test_a_module_beside_the_model_can_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "beside_the_model.py").write_text("HALF = 0.5\n")
    body = "def predict(images):\n    return [HALF] * len(images)\n"
    target = written(tmp_path, f"from beside_the_model import HALF\n{body}")
    assert said(models.load(target), "a") == [(0.5,)]
    assert sys.path[-1] == str(tmp_path)  # behind all that is installed


# -- SPEC.toml ----------------------------------------------------------------------------


WHOLE: dict[str, Any] = {"dataset": {"labels": "l.csv"}, "model": {"target": "model.py:predict"}}


@pytest.mark.parametrize(
    ("section", "fields", "message"),
    [
        ("certify", {"half_width": 5}, r"half_width: .*below 0\.5, such as 0\.05 for .*, got 5$"),
        ("certify", {"targets": "overall"}, r"got 'overall'; write \[\"overall\"\]"),
        ("audit", {"budget": "200"}, r"audit\.budget: .*got '200'; write it without quotes"),
        ("audit", {"half_width": 0.1}, r"unknown field 'half_width'.*; it belongs to \[certify\]"),
        ("space", {"relations": []}, r"space\.relations: expected at least 1 item, .*; leave"),
        ("dataset", {"kind": "csv"}, r"unknown value 'csv'.*'avtt list datasets' describes them"),
    ],
)
def test_a_field_that_does_not_fit_is_told_what_to_write(
    section: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        parse_spec({**WHOLE, section: {**WHOLE.get(section, {}), **fields}}, "SPEC.toml")


def test_options_are_named_as_they_are_written() -> None:
    called = {"certify.half_width": "--half-width"}
    with pytest.raises(InputError, match=r"^--half-width: expected a share .* below 0\.5"):
        parse_spec({**WHOLE, "certify": {"half_width": 5.0}}, "command line", called)


def test_logits_of_classes_go_through_a_softmax(tmp_path: Path) -> None:
    target = written(tmp_path, "def predict(images):\n    return [[0.0, 0.0]] * len(images)\n")
    table_ = {"dataset": {"kind": "fashion"}, "model": {"target": target, "output": "logits"}}
    both = [parse_spec({**table_, "oracle": o}, "spec") for o in ({}, {"kind": "top-class"})]
    built = [
        build_model(spec, tmp_path, from_table(None, pd.DataFrame({"a": [1]}))) for spec in both
    ]
    assert [m.activation for m in built] == ["sigmoid", "softmax"]  # type: ignore[attr-defined]


def test_files_that_are_no_spec_are_told_from_one_and_not_repeated(tmp_path: Path) -> None:
    spec = tmp_path / "SPEC.toml"
    with pytest.raises(
        InputError, match=r"got nothing: it does not exist; 'avtt init DIR' writes one"
    ):
        read_spec(spec)
    spec.write_text("[model]\nkey = sk-0123456789abcdef\n")
    with pytest.raises(InputError, match=r"line 2.*; texts stand in quotes") as caught:
        read_spec(spec)
    assert "sk-0123" not in str(caught.value)
    with pytest.raises(InputError, match=r"did you mean '.*SPEC\.toml'"):
        read_spec(tmp_path)
    (tmp_path / "labels.csv").write_text("id,bright\n")
    with pytest.raises(InputError, match=r"is no TOML.*; expected a SPEC\.toml"):
        read_spec(tmp_path / "labels.csv")
