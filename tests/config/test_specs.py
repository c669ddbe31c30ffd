"""The audits under experiments/specs run as they stand, on small data where they look for it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.config import read_spec
from adaptive_vtt.config.building import build_space
from adaptive_vtt.config.datasets import read_dataset
from adaptive_vtt.datasets import from_masks, medmnist_sets
from adaptive_vtt.datasets.formats.endobench import from_endobench
from adaptive_vtt.datasets.vqa.question_making import choose
from adaptive_vtt.datasets.vqa.question_table import write_questions
from adaptive_vtt.demo import server as demo
from adaptive_vtt.errors import AvttError
from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.experiments.reic.template_captioner import TemplateCaptioner
from adaptive_vtt.utils.files import write_bytes, write_text
from adaptive_vtt.utils.image_codec import png
from tests.helpers.command_line import run
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


@pytest.mark.slow
def test_medmnist_is_audited_verified_and_exported(tmp_path: Path) -> None:
    medmnist(tmp_path)
    out = audited(copied("medmnist.toml", tmp_path))
    corruption, cell = (
        "relation medmnistc/bloodmnist/stain_deposit: misclassification rate",
        "basophil: miss rate",
    )
    assert {"overall misclassification rate", corruption, cell} <= targets(out)
    found = read_dataset(tmp_path / "failures" / "dataset.toml")
    assert found.concepts == medmnist_sets()["bloodmnist"].concepts
    assert all(sum(found.sample(i).truth.values()) == 1 for i in range(len(found)))


@pytest.mark.slow
def test_isic_is_audited_verified_and_exported(tmp_path: Path) -> None:
    isic_files(tmp_path / "ISIC2018")
    (tmp_path / "classifier.py").write_text(LESIONS)
    found = targets(audited(copied("isic.toml", tmp_path)))
    assert {"globules: miss rate", "pigment network: false-alarm rate"} <= found
    assert "relation medmnistc/dermamnist/black_corner: label error" in found


@pytest.mark.slow
def test_idrid_is_audited_in_regions_verified_and_exported(tmp_path: Path) -> None:
    idrid_files(tmp_path)
    (tmp_path / "classifier.py").write_text(LESIONS)
    out = audited(copied("idrid.toml", tmp_path))
    assert "soft exudates: miss rate" in targets(out)
    space = build_space(read_spec(tmp_path / "idrid.toml"), tmp_path)
    assert len(space.dataset) == 24  # one image of the test split
    inside = space.dataset.truth(np.arange(24), np.array(3))
    assert inside.tolist() == [0, 1, 1, 1, 0, 0] * 2 + [0] * 12  # rows 1 to 3 of 8
    failed = pd.read_csv(tmp_path / "failures" / "failures.csv")
    assert failed["sample"].str.startswith("IDRiD_55 [").all()


@pytest.mark.slow
def test_masks_are_audited_verified_and_exported(tmp_path: Path) -> None:
    kvasir(tmp_path)
    out = audited(copied("masks.toml", tmp_path))
    assert "polyp drop > 0.5: EFR" in targets(out)
    assert "relation medtest/blood, polyp drop > 0.25: EFR" in targets(out)
    failures = tmp_path / "failures"
    dataset = from_masks(failures, images="images", masks="masks/polyp")
    assert len(dataset) == len(pd.read_csv(failures / "labels.csv"))
    assert {row["sample"] for _, row in pd.read_csv(failures / "failures.csv").iterrows()} <= {
        f"frame{place}" for place in range(4)
    }


@pytest.mark.slow
def test_phantom_is_audited_verified_and_exported(tmp_path: Path) -> None:
    (tmp_path / "segmenter.py").write_text(SEGMENTER)
    spec = copied(
        "phantom.toml",
        tmp_path,
        model=("adaptive_vtt.experiments.medtest.phantom_unet:predict", "segmenter.py:predict"),
        count=("count = 500", "count = 6"),
        size=("size = 256", "size = 96"),
    )
    assert "relation medtest/text, polyp drop > 0.25: EFR" in targets(audited(spec))
    failures = tmp_path / "failures"
    assert len(from_masks(failures, images="images", masks="masks/polyp")) > 0


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


ENDPOINTS = [
    pytest.param(
        "anthropic.toml", "openai", "", '"claude-sonnet-4-5"', None, marks=pytest.mark.slow
    ),
    ("gemini.toml", "gemini", "/v1beta/openai", '"gemini-2.5-flash"', "refuses log-probabilities"),
    pytest.param(
        "vllm.toml", "vllm", "/v1", '"Qwen/Qwen2.5-VL-7B-Instruct"', None, marks=pytest.mark.slow
    ),
    ("ollama.toml", "ollama", "/v1", '"qwen2.5vl"', "ignores log-probabilities"),
    pytest.param(
        "ollama.toml",
        "ollama-old",
        "/v1",
        '"qwen2.5vl"',
        "over structured output, so P(yes) comes",
        marks=pytest.mark.slow,
    ),
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
        text = (SPECS / name).read_text(encoding="utf-8")
        address = "[model]\n" if name == "anthropic.toml" else re.findall(r'url = ".*"', text)[0]
        spec = copied(
            name,
            tmp_path,
            count=("count = 200", "count = 8"),
            size=("size = 256", "size = 96"),
            url=(
                address,
                f'{"[model]" if name == "anthropic.toml" else ""}\nurl = "{server.url}{root}"\n',
            ),
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


def test_specs_are_listed_and_begun_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("list", "specs") == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines if line[0] != " "]  # what is folded is indented
    assert names == sorted(path.stem for path in SPECS.glob("*.toml"))
    assert max(map(len, lines)) <= 100
    assert "endobench          EndoBench's multiple-choice questions to a chat model" in lines
    assert run("init", str(tmp_path), "--like", "endobench") == 0
    assert (tmp_path / "SPEC.toml").read_text() == (SPECS / "endobench.toml").read_text()
    assert run("init", str(tmp_path), "--like", "masks") == 2
    assert "SPEC.toml: stands there already; nothing was written" in capsys.readouterr().err
    assert run("init", str(tmp_path / "a"), "--like", "endobnch") == 2
    assert "unknown spec 'endobnch'; did you mean 'endobench'?" in capsys.readouterr().err
    assert run("init", str(tmp_path / "a"), "--like", "masks", "--full") == 2
    assert "--like: expected neither --data, --model nor --full with it" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("name", sorted(path.name for path in SPECS.glob("*.toml")))
def test_every_spec_is_valid_listed_and_has_a_goal(name: str) -> None:
    spec = read_spec(SPECS / name)
    assert (spec.certify.half_width is not None) != (name == "explore.toml")
    assert (spec.stop.uncertainty is not None) == (name == "explore.toml")
    assert spec.audit.budget is not None
    assert f"`{name}`" in (SPECS / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("masks.toml", ('["medtest"]', '["medtst"]'), "unknown relation 'medtst'"),
        (
            "masks.toml",
            ('path = "Kvasir-SEG"', 'path = "Kvasir"'),
            "is no folder; did you mean 'Kvasir-SEG'",
        ),
        (
            "medmnist.toml",
            ('split = "test"', 'split = "val"'),
            "expected the array val_images, got",
        ),
    ],
)
def test_mistakes_in_a_spec_get_one_sentence(
    tmp_path: Path,
    name: str,
    change: tuple[str, str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    {"masks.toml": kvasir, "medmnist.toml": medmnist}[name](tmp_path)
    spec = copied(name, tmp_path, change=change)
    assert run("audit", str(spec), "--out", str(tmp_path / "run")) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert sentence in line


@pytest.mark.parametrize("spec", sorted(SPECS.glob("*.toml")), ids=lambda spec: spec.stem)
def test_a_spec_whose_data_are_not_there_says_what_to_do(spec: Path, tmp_path: Path) -> None:
    """Most people try a spec before they have put anything beside it."""
    try:
        build_space(read_spec(copied(spec.name, tmp_path)), tmp_path)
    except AvttError as error:
        said = str(error)
        assert "Errno" not in said
        assert re.search(r"; put it there, or name another$|pip install", said), said
