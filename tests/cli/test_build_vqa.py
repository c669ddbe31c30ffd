"""``avtt build-vqa``, and audits of what it writes: folders in, questions out, failures back."""

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.datasets.formats.endobench import from_endobench
from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.models import Answer, Prompt
from adaptive_vtt.oracles import MultipleChoice
from adaptive_vtt.results.export.failures import export_failures, export_questions
from adaptive_vtt.utils.files import write_bytes, write_text
from adaptive_vtt.utils.image_codec import png
from tests.helpers.command_line import refused, run, shown
from tests.helpers.endpoint import DemoModel, demo_server
from tests.helpers.loopback import RawResponse, serving


def picture(seed: int, height: int = 90, width: int = 120) -> np.ndarray:
    return np.random.default_rng(seed).integers(80, 250, (height, width, 3), dtype=np.uint8)


def voc(folder: Path, count: int = 8) -> Path:
    """Blood smears in the layout of VOC: a WBC and, in every second one, three RBC."""
    for k in range(count):
        write_bytes(
            folder / "JPEGImages" / f"b{k}.jpg", cv2.imencode(".jpg", picture(k))[1].tobytes()
        )
        boxes = [("WBC", 5 + 5 * k, 5, 35 + 5 * k, 30)]
        boxes += [("RBC", 5 + 30 * j, 60, 25 + 30 * j, 80) for j in range(3 * (k % 2))]
        objects = "".join(
            f"<object><name>{name}</name><bndbox><xmin>{a + 1}</xmin><ymin>{b + 1}</ymin>"
            f"<xmax>{c}</xmax><ymax>{d}</ymax></bndbox></object>"
            for name, a, b, c, d in boxes
        )
        size = "<size><width>120</width><height>90</height><depth>3</depth></size>"
        write_text(
            folder / "Annotations" / f"b{k}.xml", f"<annotation>{size}{objects}</annotation>"
        )
    return folder


def masks(folder: Path, count: int = 6) -> Path:
    """Frames beside masks of one polyp each, the last without."""
    frames = phantoms.frames(count, size=96, polyps="always", seed=1)
    for place in range(count):
        sample = frames.sample(place)
        mask = sample.masks["polyp"].astype(np.uint8) * 255 * (place < count - 1)
        write_bytes(folder / "images" / f"f{place}.png", png(sample.require_image()))
        write_bytes(folder / "masks" / f"f{place}.png", png(mask))
    return folder


def labels(folder: Path, count: int = 12) -> Path:
    rows = ["image,polyp,ulcer"]
    for k in range(count):
        write_bytes(folder / "images" / f"i{k}.png", png(picture(k, 30, 40)))
        polyp = int(k % 3 == 0)
        rows.append(f"i{k}.png,{polyp},{int(k % 3 == 1)}")
    write_text(folder / "labels.csv", "\n".join(rows) + "\n")
    return folder


# -- folders in, questions out -------------------------------------------------------------


def test_boxes_become_questions_that_read_back(tmp_path: Path) -> None:
    out = tmp_path / "q"
    printed = shown("build-vqa", str(voc(tmp_path / "voc")), "--out", str(out))
    assert {path.name for path in out.iterdir()} == {"questions.tsv", "sources.csv", "SPEC.toml"}
    dataset = from_endobench(out / "questions.tsv")
    sources = pd.read_csv(out / "sources.csv")
    assert len(dataset) == len(sources)
    assert printed.startswith(f"wrote {out}: {len(sources)} questions about 8 images\n")
    for kind, count in sources["kind"].value_counts().items():
        assert f"  {kind}: {count}\n" in printed
    assert "  contour: none\n" in printed
    for k, row in enumerate(sources.itertuples()):
        sample = dataset.sample(k)
        assert sample.require_image().shape == (90, 120, 3)
        assert [*sample.truth] == [row.task]
        assert sample.answers[str(row.task)] == (row.answer,)
        assert sample.asks[str(row.task)].text == row.question


def test_masks_become_questions(tmp_path: Path) -> None:
    out = tmp_path / "q"
    data = masks(tmp_path / "set")
    arguments = ["--word", "object=polyp", "--scene", "colonoscopy"]
    output = shown("build-vqa", str(data), "--out", str(out), *arguments)
    assert output.startswith(f"wrote {out}:")
    assert {line for line in output.splitlines() if "none" in line} == {
        f"  {kind}: none" for kind in ("type", "box", "contour", "multi", "coordinate")
    }
    dataset = from_endobench(out / "questions.tsv")
    assert {*dataset.metadata_values("scene")} == {"Colonoscopy"}
    presence = [
        row for row in pd.read_csv(out / "sources.csv").itertuples() if row.kind == "presence"
    ]
    assert sorted(row.answer for row in presence) == ["A"] * 5 + ["B"]
    assert all("polyp" in row.question for row in presence)


def test_what_labels_were_taken_for_is_told(tmp_path: Path) -> None:
    labels(tmp_path / "set")
    table = tmp_path / "set" / "labels.csv"
    write_text(table, table.read_text().replace("ulcer", "text"))
    asked = ("build-vqa", str(tmp_path / "set"), "--kinds", "presence", "--concepts", "polyp,text")
    printed = shown(*asked, "--out", str(tmp_path / "q"))
    assert "labels: polyp (lesion), text (artefact); --role LABEL=ROLE changes" in printed
    assert set(pd.read_csv(tmp_path / "q/sources.csv")["about"].str[:5]) == {"polyp"}
    printed = shown(*asked, "--out", str(tmp_path / "r"), "--role", "text=lesion")
    assert "labels: polyp (lesion), text (lesion); " in printed


# -- what is refused, and what is left of it -----------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--kinds", "presense"], "unknown kind of question 'presense'; did you mean 'presence'?"),
        (["--concepts", "WBS"], "unknown concept 'WBS': expected one of RBC, WBC"),
        (["--role", "WBC"], "--role: expected LABEL=ROLE, got 'WBC'"),
        (["--role", "WBC=cell"], "unknown role 'cell'"),
        (["--word", "WBC=a", "--word", "WBC=b"], "--word: 'WBC' is given twice"),
        (["--scene", "Colonscopy"], "unknown scene 'Colonscopy'; did you mean 'Colonoscopy'?"),
        (["--per-class", "0"], "expected at least 1 question per class, got 0"),
        (["--kinds", "contour"], "no question of the kinds contour can be made"),
    ],
)
def test_mistakes_get_one_sentence_and_leave_nothing(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    data = voc(tmp_path / "voc", 2)
    assert sentence in refused("build-vqa", str(data), "--out", str(tmp_path / "q"), *arguments)
    assert {path.name for path in tmp_path.iterdir()} == {"voc"}


# -- audited, reported, exported ------------------------------------------------------------


class Always:
    """Says the same letter to everything."""

    answers, name = "one", "always"

    def __init__(self, letter: str = "A") -> None:
        self.letter = letter

    def ask(self, prompts: list[Prompt]) -> list[Answer]:
        return [Answer((f"The answer is {self.letter}.",)) for _ in prompts]


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("questions")
    assert (
        run("build-vqa", str(voc(root / "voc")), "--out", str(root / "q"), "--per-class", "2") == 0
    )
    return root / "q"


@pytest.fixture(scope="module")
def audit(questions: Path) -> Audit:
    space = QuestionSpace(
        from_endobench(questions / "questions.tsv"),
        ["identity", "gaussian_noise"],
        oracle=MultipleChoice(),
    )
    plain: Any = {"surrogate": False, "self_taught": False, "seed": 2, "budget": 30}
    audit = Audit(space, Always(), half_width=0.1, targets=["overall"], **plain)
    audit.run()
    return audit


def test_failures_keep_words_and_options(audit: Audit, tmp_path: Path) -> None:
    written = export_failures(audit.journal, audit.space, tmp_path / "out")
    matches = pd.read_csv(tmp_path / "out/failures.csv")
    assert written.answers == len(matches) > 5
    for row in matches.to_dict("records"):
        sample = audit.space.dataset.sample(int(row["sample"]))
        ask = sample.asks[row["concept"]]
        assert row["asked"] == ask.text
        assert row["options"].split(" | ") == [
            f"{letter}. {text}" for letter, text in zip("ABCDEF", ask.options, strict=False)
        ]
        assert (row["right"],) == sample.answers[row["concept"]]
        assert row["right"] != "A"
        assert row["answer_text"] == "The answer is A."
    assert "endobench" in (tmp_path / "out/dataset.toml").read_text()
    assert not (tmp_path / "out/labels.csv").exists()
    again = from_endobench(tmp_path / "out/questions.tsv")
    assert len(again) == len(matches)
    for k, row in enumerate(matches.to_dict("records")):
        seen = cv2.imread(str(tmp_path / f"out/images/{row['id']}.png"))[:, :, ::-1]
        np.testing.assert_array_equal(again.sample(k).image, seen)  # to the pixel


def test_exported_questions_read_back_as_they_were_asked(audit: Audit, tmp_path: Path) -> None:
    count = export_questions(
        audit.journal, audit.space, tmp_path / "all.tsv", everything=True, image_format="png"
    )
    again, table = from_endobench(tmp_path / "all.tsv"), pd.read_csv(tmp_path / "all.tsv", sep="\t")
    assert count == len(again) == audit.result().questions
    for k, row in enumerate(table.to_dict("records")):
        before, after = audit.space.dataset.sample(int(row["sample"])), again.sample(k)
        assert after.asks == before.asks
        assert after.answers == before.answers
        assert {**after.metadata} == {**before.metadata}
        assert row["gt"] == after.asks[row["task"]].options["ABCDEF".index(row["answer"])]
    wrong = export_questions(audit.journal, audit.space, tmp_path / "wrong.tsv")
    assert wrong == int((table["loss"] >= 0.5).sum()) < count


def test_exported_columns_are_those_of_vlmevalkit(audit: Audit, tmp_path: Path) -> None:
    """As VLMEvalKit reads a TSV: whole numbers as index, images that Pillow opens."""
    pillow = pytest.importorskip("PIL.Image")
    export_questions(audit.journal, audit.space, tmp_path / "q.tsv")
    table = pd.read_csv(tmp_path / "q.tsv", sep="\t")
    assert table["index"].tolist() == [*range(len(table))]
    assert {"image", "question", "answer", "category", *"ABCD"} <= {*table.columns}
    assert "split" not in table.columns
    for coded in table["image"]:
        assert pillow.open(io.BytesIO(base64.b64decode(coded))).size == (120, 90)
    assert set(table["answer"]) <= set("BCDEF")


@pytest.mark.slow
def test_the_command_chain_with_the_demo_endpoint(
    questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = DemoModel(())
    with demo_server(fake) as server:
        text = (questions / "SPEC.toml").read_text()
        text = text.replace("http://127.0.0.1:8008/v1", f"{server.url}/v1")
        text = text.replace("demo-classifier", server.model)
        write_text(questions / "mine.toml", text)
        out = str(tmp_path / "run")
        assert run("audit", str(questions / "mine.toml"), "--budget", "25", "--out", out) == 0
    assert run("verify", out) == 0
    tsv, every = tmp_path / "wrong.tsv", tmp_path / "all.tsv"
    counts = json.loads(shown("export", out, "--tsv", str(tsv), "--json"))
    assert counts == {"questions": len(from_endobench(tsv))}
    asked = json.loads((tmp_path / "run" / "result.json").read_text())["questions"]
    both = ["--tsv", str(every), "--all", "--failures", str(tmp_path / "f")]
    assert f"wrote {every}: {asked} questions" in shown("export", out, *both)
    for given, sentence in (
        (["--tsv", str(tsv)], "wrong.tsv: exists already; nothing was written"),
        ([], "--mix OUT or --questions SPEC.toml, got none of them"),
        (["--failures", str(tmp_path / "g"), "--all"], "--all: expected --tsv FILE.tsv with it"),
        (["--tsv", "new.tsv", "--coco"], "--coco: expected --failures OUT or --disagreements OUT"),
        (["--tsv", "new.tsv", "--image-format", "gif"], "unknown image format 'gif'"),
    ):
        assert sentence in refused("export", out, *given)


# -- more wordings, by a model -------------------------------------------------------------

PAID = 'kind = "openai"\nurl = "http://127.0.0.1:9/v1"\nmodel = "m"'


@pytest.mark.parametrize(
    ("section", "more", "wrong"),
    [
        ('kind = "recorded"\nanswers = "x.csv"', [], r"chat\.toml: model\.kind: expected a kind"),
        (PAID, [], r"--paraphrase: expected --max-cost, and .*, got no --max-cost"),
        (PAID, ["--max-cost", "1"], r"--paraphrase: expected .*chat\.toml, got no prices"),
    ],
)
def test_a_model_of_words_whose_money_is_bounded_is_wanted(
    section: str, more: list[str], wrong: str, tmp_path: Path
) -> None:
    write_text(tmp_path / "chat.toml", f"[model]\n{section}\n")
    data, chat = str(labels(tmp_path / "set")), str(tmp_path / "chat.toml")
    given = ["--kinds", "presence", "--out", str(tmp_path / "a"), "--paraphrase", chat]
    assert re.search(wrong, refused("build-vqa", data, *given, *more))
    assert not (tmp_path / "a").exists()


def test_an_endpoint_is_sent_the_prompt_as_it_is_and_paid(tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(path: str, headers: object, body: bytes) -> RawResponse:
        content = json.loads(body)["messages"][-1]["content"]
        asked.append(content if isinstance(content, str) else content[0]["text"])
        words = {"content": "Do you see any {subject} in this image?", "role": "assistant"}
        reply = {"choices": [{"message": words}]}
        reply["usage"] = {"prompt_tokens": 100, "completion_tokens": 20}  # type: ignore[assignment]
        return 200, {}, json.dumps(reply).encode()

    data = labels(tmp_path / "set")
    with serving(answer) as url:
        section = {"kind": "openai", "url": f"{url}/v1", "model": "m"}
        prices = {"price_input": 1000.0, "price_output": 5000.0}
        lines = [f"{name} = {json.dumps(value)}" for name, value in (section | prices).items()]
        write_text(tmp_path / "chat.toml", "\n".join(["[model]", *lines]))
        given = ["--kinds", "presence", "--out", str(tmp_path / "a"), "--max-cost", "100"]
        given += ["--paraphrase", str(tmp_path / "chat.toml"), "--seed", "1"]
        assert "1 more wordings for $0.2" in shown("build-vqa", str(data), *given)
    (prompt,) = asked
    assert prompt.startswith("Questions of one kind")
    assert "Write three more ways" in prompt
