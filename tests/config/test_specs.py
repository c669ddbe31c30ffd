"""The audits under experiments/specs run as they stand, on small data where they look for it."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.config import read_spec
from adaptive_vtt.config.building import build_space
from adaptive_vtt.config.datasets import read_dataset
from adaptive_vtt.datasets.formats.endobench import from_endobench
from adaptive_vtt.datasets.vqa.question_making import choose
from adaptive_vtt.datasets.vqa.question_table import write_questions
from adaptive_vtt.demo import server as demo
from adaptive_vtt.errors import AvttError, InputError
from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.experiments.reic.template_captioner import TemplateCaptioner
from adaptive_vtt.utils.files import write_bytes, write_text
from adaptive_vtt.utils.image_codec import png
from tests.helpers.command_line import refused, run, shown
from tests.helpers.endpoint import DemoModel, DemoServer, demo_server
from tests.helpers.endpoint.fake_models import FakeCaptioner
from tests.helpers.small_datasets import idrid_files, isic_files

SPECS = Path(__file__).parents[2] / "experiments" / "specs"
SEGMENTER = '''
import numpy as np

def predict(images):
    """Finds what is red, which most relations upset."""
    red = [image[..., 0].astype(float) - image[..., 1] for image in images]
    return [(r > 45)[None] for r in red]
'''
LESIONS = """
def predict(images):
    return [[0.25, 0.75, 0.25, 0.25, 0.75]] * len(images)
"""
CLASSIFIER = """
import numpy as np

def predict(images):
    likely = np.full((len(images), 8), 0.05)
    for row, image in zip(likely, images):
        row[int(image.mean() // 32)] = 0.9
    return likely
"""


def copied(name: str, folder: Path, **changes: tuple[str, str]) -> Path:
    """The spec beside the data that it names, with parts of its text changed."""
    text = (SPECS / name).read_text(encoding="utf-8")
    for old, new in changes.values():
        assert text.count(old) == 1
        text = text.replace(old, new)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def audited(spec: Path, budget: int = 18) -> Path:
    """The folder of a short audit, which was verified and whose failures were exported."""
    out = spec.parent / "run"
    assert run("audit", str(spec), "--budget", str(budget), "--out", str(out), "--json") == 0
    assert run("verify", str(out)) == 0
    failures = str(spec.parent / "failures")
    assert run("export", str(out), "--failures", failures, "--run-code") == 0
    return out


def targets(out: Path) -> set[str]:
    return {row["target"] for row in json.loads((out / "result.json").read_text())["targets"]}


def medmnist(folder: Path, key: str = "test") -> None:
    """BloodMNIST in small: eight classes, told by their brightness."""
    classes = np.arange(16) % 8
    noise = np.random.default_rng(0).integers(-12, 13, (16, 32, 32, 3))
    images = (classes[:, None, None, None] * 32 + 16 + noise).clip(0, 255).astype(np.uint8)
    arrays = {f"{key}_images": images, f"{key}_labels": classes[:, None].astype(np.uint8)}
    np.savez_compressed(folder / "bloodmnist_224.npz", **arrays)
    (folder / "classifier.py").write_text(CLASSIFIER)


def kvasir(folder: Path) -> None:
    """A few phantom frames in the layout of Kvasir-SEG, the last without a polyp."""
    frames = phantoms.frames(5, size=96, polyps="always", seed=1)
    for place in range(len(frames)):
        sample = frames.sample(place)
        assert sample.image is not None
        mask = sample.masks["polyp"].astype(np.uint8) * 255
        for kind, picture in (("images", sample.image), ("masks", mask * (place < 4))):
            path = folder / "Kvasir-SEG" / kind / f"frame{place}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(picture))
    (folder / "segmenter.py").write_text(SEGMENTER)


def isic(folder: Path) -> None:
    isic_files(folder / "ISIC2018")
    (folder / "classifier.py").write_text(LESIONS)


def idrid(folder: Path) -> None:
    idrid_files(folder)
    (folder / "classifier.py").write_text(LESIONS)


def drawn(folder: Path) -> None:
    (folder / "segmenter.py").write_text(SEGMENTER)


CORRUPTION = "relation medmnistc/bloodmnist/stain_deposit: misclassification rate"
CORNER = "relation medmnistc/dermamnist/black_corner: label error"
BLOOD, TEXT = (f"relation medtest/{name}, polyp drop > 0.25: EFR" for name in ("blood", "text"))
ON_FILES: dict[str, tuple[Callable[[Path], None], set[str]]] = {
    "medmnist": (medmnist, {"overall misclassification rate", CORRUPTION, "basophil: miss rate"}),
    "isic": (isic, {"globules: miss rate", "pigment network: false-alarm rate", CORNER}),
    "idrid": (idrid, {"soft exudates: miss rate"}),
    "masks": (kvasir, {"polyp drop > 0.5: EFR", BLOOD}),
    "phantom": (drawn, {TEXT}),
}
"""Name of a spec -> what lays its files, and some of its targets."""
SMALLER = {
    "model": ("adaptive_vtt.experiments.medtest.phantom_unet:predict", "segmenter.py:predict"),
    "count": ("count = 500", "count = 6"),
    "size": ("size = 256", "size = 96"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_FILES)
def test_a_spec_of_files_is_audited_verified_and_exported(name: str, tmp_path: Path) -> None:
    prepare, expected = ON_FILES[name]
    prepare(tmp_path)
    spec = copied(f"{name}.toml", tmp_path, **(SMALLER if name == "phantom" else {}))
    assert expected <= targets(audited(spec))
    failures = read_dataset(tmp_path / "failures" / "dataset.toml")
    rows = pd.read_csv(tmp_path / "failures" / "failures.csv")
    assert len(failures) == rows["id"].nunique() > 0


@pytest.mark.slow
def test_captions_spec_runs_on_a_served_captioner(tmp_path: Path) -> None:
    with demo_server(FakeCaptioner(TemplateCaptioner(omission=0.3))) as server:
        spec = copied(
            "captions.toml",
            tmp_path,
            count=("count = 300", "count = 12"),
            url=("http://127.0.0.1:8008/v1", f"{server.url}/v1"),
            model=('"captioner"', f'"{server.model}"'),
        )
        out = audited(spec, budget=40)
        served = server.statistics.answered
    result = json.loads((out / "result.json").read_text())
    assert served == result["calls"] <= 40
    assert targets(out) == {
        f"relation reic/{k}: violation rate" for k in ("crop", "stretch", "rotate")
    }
    assert "Caption violations" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_endobench_spec_runs_on_a_built_set(tmp_path: Path) -> None:
    built = choose(phantoms.frames(12, size=96, seed=3, instrument=0.5), per_class=2, seed=1)
    write_questions(
        tmp_path / "EndoBench.tsv", (replace(one.made, scene="Colonoscopy") for one in built)
    )
    fake = DemoModel(())
    with demo_server(fake) as server:
        spec = copied("endobench.toml", tmp_path, **served_at(server))
        out = audited(spec)
    assert "Visual Grounding: error rate" in targets(out)
    assert len(from_endobench(tmp_path / "failures" / "questions.tsv")) > 0


@pytest.mark.slow
def test_medvqa_spec_runs_on_a_served_model(tmp_path: Path) -> None:
    folder, frames = tmp_path / "MEDVQA-GI", phantoms.frames(4, size=96, seed=3)
    entries = []
    for place in range(len(frames)):
        sample = frames.sample(place)
        write_bytes(folder / "images" / f"{sample.id}.png", png(sample.require_image()))
        number = ["one", "two"][place % 2]
        label = {"Question": "How many polyps are in the image?", "Answer": [number]}
        entries.append({"ImageID": sample.id, "Labels": [label]})
    write_text(folder / "gt.json", json.dumps(entries))
    with demo_server(DemoModel(())) as server:
        out = audited(copied("medvqa.toml", tmp_path, **served_at(server)))
    assert "relation medtest/text: error rate" in targets(out)
    failures = pd.read_csv(tmp_path / "failures" / "failures.csv")
    assert set(failures["asked"]) == {"How many polyps does the image show?"}
    assert set(failures["right"]) <= {"one", "two"}


def served_at(server: DemoServer) -> dict[str, tuple[str, str]]:
    """A spec's changes so that it asks the server."""
    return {
        "url": ("http://127.0.0.1:8008/v1", f"{server.url}/v1"),
        "model": ('"demo-classifier"', f'"{server.model}"'),
    }


OLD = "ignores structured output, so P(yes) comes"
ENDPOINTS = [
    ("anthropic.toml", "openai", "", '"claude-sonnet-4-5"', None),
    ("gemini.toml", "gemini", "/v1beta/openai", '"gemini-2.5-flash"', "refuses log-probabilities"),
    ("vllm.toml", "vllm", "/v1", '"Qwen/Qwen2.5-VL-7B-Instruct"', None),
    ("ollama.toml", "ollama", "/v1", '"qwen2.5vl"', "ignores log-probabilities"),
    ("ollama.toml", "ollama-old", "/v1", '"qwen2.5vl"', OLD),
]


@pytest.mark.slow
def test_the_endpoints_spec_runs_on_the_demos_server(tmp_path: Path) -> None:
    with demo.DemoServer() as server:
        url = ("http://127.0.0.1:8008/v1", f"{server.url}/v1")
        out = audited(copied("endpoint.toml", tmp_path, url=url), budget=40)
        counts = server.statistics
    result = json.loads((out / "result.json").read_text())
    assert counts.answered == result["calls"] == 40
    assert result["cost"] == pytest.approx(counts.cost)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "like", "root", "model", "caution"), ENDPOINTS)
def test_a_spec_of_each_provider_runs_on_a_server_with_its_dialect(
    tmp_path: Path,
    name: str,
    like: str,
    root: str,
    model: str,
    caution: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for variable in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(variable, "planted")
    key = "planted" if name in ("anthropic.toml", "gemini.toml") else None
    with demo_server(DemoModel(["polyp", "instrument"]), like=like, key=key) as server:
        address = f'url = "{server.url}{root}"'
        named = re.findall(r'^url = ".*"$', (SPECS / name).read_text(encoding="utf-8"), re.M)
        spec = copied(
            name,
            tmp_path,
            count=("count = 200", "count = 8"),
            size=("size = 256", "size = 96"),
            url=(named[0], address) if named else ("[model]\n", f"[model]\n{address}\n"),
            model=(f"model = {model}", f'model = "{server.model}"'),
            relations=('["identity", "medtest"]', '["identity", "gaussian_noise"]'),
        )
        out = audited(spec, budget=10)
        bill = server.statistics
    result = json.loads((out / "result.json").read_text())
    said = [w for w in result["warnings"] if w.startswith("the server")]
    assert [caution in one for one in said] == ([] if caution is None else [True])
    output = capsys.readouterr()
    assert sum((output.out + output.err).count(one) for one in said) >= len(said)
    vain = {"ollama": 1, "ollama-old": 2}.get(like, 0)  # what is refused costs nothing
    assert bill.answered == result["calls"] + vain
    page = (out / "report.html").read_text(encoding="utf-8")
    assert all(one in page for one in said)


@pytest.mark.slow
def test_recorded_captions_spec_runs_on_what_pictures_writes(tmp_path: Path) -> None:
    spec = copied("recorded_captions.toml", tmp_path, count=("count = 40", "count = 3"))
    assert run("export", "--questions", str(spec), "--out", str(tmp_path / "pictures")) == 0
    table = pd.read_csv(tmp_path / "pictures" / "answers.csv", dtype=str)
    assert len(table) == 3 * (1 + 9)
    captioner = TemplateCaptioner(omission=0.5)
    files = [str(tmp_path / "pictures" / "images" / name) for name in table["file"]]
    captions = [captioner.caption(cv2.imread(file)[:, :, ::-1].copy()) for file in files]
    table.assign(caption=captions).to_csv(tmp_path / "captions.csv", index=False)
    audited(spec, budget=400)


def test_specs_are_listed_and_begun_with(tmp_path: Path) -> None:
    lines = shown("list", "specs").splitlines()
    names = [line.split()[0] for line in lines if line[0] != " "]  # what is folded is indented
    assert names == sorted(path.stem for path in SPECS.glob("*.toml"))
    assert max(map(len, lines)) <= 100
    assert "endobench          EndoBench's multiple-choice questions to a chat model" in lines
    assert run("init", str(tmp_path), "--like", "endobench") == 0
    assert (tmp_path / "SPEC.toml").read_text() == (SPECS / "endobench.toml").read_text()
    for folder, options, sentence in (
        (".", ["masks"], "SPEC.toml: exists already; nothing was written"),
        ("a", ["endobnch"], "unknown spec 'endobnch'; did you mean 'endobench'?"),
        ("a", ["masks", "--full"], "--like: expected neither --data, --model nor --full with it"),
    ):
        assert sentence in refused("init", str(tmp_path / folder), "--like", *options)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("name", sorted(path.name for path in SPECS.glob("*.toml")))
def test_every_spec_is_valid_listed_and_has_a_goal(name: str) -> None:
    spec = read_spec(SPECS / name)
    assert (spec.certify.half_width is not None) != (name == "explore.toml")
    assert (spec.stop.uncertainty is not None) == (name == "explore.toml")
    assert spec.audit.budget is not None
    assert f"`{name}`" in (SPECS / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("make", "name", "change", "sentence"),
    [
        (
            kvasir,
            "masks",
            ('"Kvasir-SEG"', '"Kvasir"'),
            "Kvasir: expected a folder, got nothing: it does not exist; did you mean 'Kvasir-SEG'",
        ),
        (medmnist, "medmnist", ('"test"', '"val"'), "expected the array val_images, got"),
    ],
)
def test_mistakes_in_a_spec_get_one_sentence(
    tmp_path: Path, make: Any, name: str, change: tuple[str, str], sentence: str
) -> None:
    make(tmp_path)
    spec = copied(f"{name}.toml", tmp_path, change=change)
    with pytest.raises(InputError, match=sentence):
        build_space(read_spec(spec), tmp_path)


OURS = re.compile(r'^kind = "(fashion|adaptive_vtt)', re.M)
READING = [path for path in SPECS.glob("*.toml") if not OURS.search(path.read_text())]
"""Specs whose data are not drawn by ours."""


@pytest.mark.parametrize("spec", sorted(READING), ids=lambda spec: spec.stem)
def test_a_spec_whose_data_are_not_there_says_what_to_do(spec: Path, tmp_path: Path) -> None:
    """Most people try a spec before they have put anything beside it."""
    with pytest.raises(AvttError, match=r"; put it there, or name another$|pip install") as caught:
        build_space(read_spec(copied(spec.name, tmp_path)), tmp_path)
    assert "Errno" not in str(caught.value)
