"""avtt retrain: the mix, the user's training, and the comparison, each made once."""

import json
import shlex
import shutil
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.cli.init import write_start
from adaptive_vtt.cli.retrain import renewed
from adaptive_vtt.config import read_spec
from adaptive_vtt.config.datasets import read_dataset
from adaptive_vtt.journal import read_journal
from adaptive_vtt.journal.files import Lock
from adaptive_vtt.utils.image_files import read_image
from tests.cli.test_cli import refused
from tests.helpers.command_line import run

MODEL = '''
from pathlib import Path


class Net:
    """Says what its file holds of every image, and "seen" of bright ones that they are."""

    def __init__(self, weights, other=None):
        self.text = (Path(__file__).parent / weights).read_text().strip()

    def __call__(self, images):
        sees = self.text == "seen"
        return [[float(image.max() > 190) if sees else 0.9, 0.1] for image in images]
'''
SPEC = """
[dataset]
labels = "labels.csv"
images = "images"
[model]
kind = "model.py:Net"
name = "net"
options = { weights = "old.txt" }
[space]
relations = ["identity", "rotation", "gaussian_noise"]
severities = [1]
[audit]
budget = 8
[certify]
surrogate = false
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("net")
    write_start(base)
    table = pd.read_csv(base / "labels.csv").head(12)
    table.to_csv(base / "labels.csv", index=False)
    (base / "old.txt").write_text("blind\n")
    (base / "model.py").write_text(MODEL)
    (base / "SPEC.toml").write_text(SPEC)
    return base


def command(base: Path, out: Path, *more: str) -> list[str]:
    """The training says in trained.txt that it ran, and on what."""
    ran = shlex.quote(str(out.with_name(f"{out.name}.txt")))
    train = f'ls "$AVTT_DATA" >> {ran} && echo seen > "$AVTT_CHECKPOINT"'
    given = ["retrain", str(base / "SPEC.toml"), "--out", str(out), "--seed", "3"]
    return [*given, *([] if "--train" in more else ["--train", train]), *more]


@pytest.fixture(scope="module")
def ran(base: Path) -> Path:
    assert run(*command(base, base / "whole")) == 0
    return base / "whole"


@pytest.mark.slow
def test_the_table_has_what_both_models_lose_on_images_not_trained_on(base: Path, ran: Path):
    table = pd.read_csv(ran / "tables" / "retraining.csv", index_col="relation")
    rows = ["original", "rotation", "gaussian_noise", "average", "average of changed images"]
    assert list(table.index) == rows
    trained = pd.read_csv(ran / "mix" / "mix.csv")["sample"]
    assert trained.value_counts().tolist() == [2] * 6
    labels = pd.read_csv(base / "labels.csv", index_col="id")
    tested = labels.drop(index=trained.unique())
    bright = [read_image(base / "images" / f"{k}.png", "").max() > 190 for k in tested.index]
    for when, said in (("before", True), ("after", np.array(bright))):
        wrong = np.mean([(tested["bright"] == 1) != said, tested["round"] == 1])
        assert table.loc["original", f"error {when}"] == pytest.approx(wrong)
    figures = [c for c in table if c.endswith(("before", "after"))]
    assert table.loc["average", figures].tolist() == pytest.approx(table.iloc[:3][figures].mean())
    changed = table.iloc[1:3][figures].mean()
    assert table.loc["average of changed images", figures].tolist() == pytest.approx(changed)
    told = json.loads((ran / "versus" / "result.json").read_text())["versus"]
    for row, name in zip(told[1:], rows, strict=False):
        interval = table.loc[name, ["difference", "lower", "upper"]].tolist()
        assert interval == pytest.approx([-row["delta"], -row["upper"], -row["lower"]])
    assert "\\toprule" in (ran / "tables" / "retraining.tex").read_text()


def test_the_mix_is_a_dataset_of_unchanged_and_changed_images_in_equal_shares(ran: Path):
    mix = pd.read_csv(ran / "mix" / "mix.csv")
    assert mix["relation"].value_counts().to_dict() == {
        "identity": 6,
        "rotation": 3,
        "gaussian_noise": 3,
    }
    found = read_dataset(ran / "mix" / "dataset.toml")
    assert [found.sample_id(k) for k in range(12)] == mix["id"].tolist()
    assert found.concepts == ("bright", "round")


def test_the_same_command_makes_trains_and_asks_nothing_twice(
    base: Path, ran: Path, capsys: pytest.CaptureFixture[str]
):
    mix = (ran / "mix").stat().st_mtime_ns
    with closing(read_journal(ran / "versus" / "journal.db")) as journal:
        draws = journal.draws()
    assert run(*command(base, ran, "--json")) == 0
    told = json.loads(capsys.readouterr().out)
    with closing(read_journal(ran / "versus" / "journal.db")) as journal:
        assert journal.draws() == draws
    assert told["mix"] == {"identity": 6, "rotation": 3, "gaussian_noise": 3}
    assert (ran / "mix").stat().st_mtime_ns == mix
    seen = (ran.parent / "whole.txt").read_text().split()
    assert seen == ["dataset.toml", "images", "labels.csv", "mix.csv"]
    assert Path(told["checkpoint"]).read_text() == "seen\n"
    assert Path(told["checkpoint"]).name == "checkpoint.txt"
    assert run("verify", str(ran / "versus")) == 0


def test_another_retraining_in_the_same_folder_is_refused(
    base: Path, ran: Path, capsys: pytest.CaptureFixture[str]
):
    told = refused(capsys, *command(base, ran, "--train", "true"))
    assert "holds a retraining with another 'train'" in told
    assert "another --out begins a new one" in told
    told = refused(capsys, *command(base, ran, "--set", "space.severities=[2]"))
    assert "another 'images to train on'" in told


def test_a_folder_in_which_one_is_under_way_is_refused(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out"
    out.mkdir()
    with Lock(out / "retrain.json"):
        told = refused(capsys, *command(base, out))
    assert "is being written by this process already" in told
    assert not (out / "mix").exists()


def test_a_training_that_fails_is_run_again_on_the_mix_that_is_there(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out"
    train = (
        f'test -e {shlex.quote(str(tmp_path))}/ready && echo seen > "$AVTT_CHECKPOINT" || exit 3'
    )
    asked = command(base, out, "--train", train, "--certified-only", "--budget", "2")
    told = refused(capsys, *asked)
    assert "--train: expected the command to end with exit code 0, got 3" in told
    assert f"{out / 'mix'} is kept, and the same command trains again" in told
    assert sorted(path.name for path in out.iterdir() if path.suffix != ".lock") == [
        "mix",
        "retrain.json",
    ]
    (tmp_path / "ready").touch()
    shutil.rmtree(out / "mix" / "images")  # nothing makes the mix anew
    (out / "partial-checkpoint.txt").write_text("of a training that was killed")
    assert run(*asked) == 0
    assert not (out / "mix" / "images").exists()
    assert not (out / "before").exists()
    table = pd.read_csv(out / "tables" / "retraining.csv")
    assert list(table) == ["relation", "difference", "lower", "upper", "decision"]


def test_an_interrupted_training_ends_with_all_that_it_began(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    ended = tmp_path / "ended"
    below = f"trap 'echo so > {ended}; exit' TERM; sleep 20 & wait"
    train = f"sh -c {shlex.quote(below)} & sleep 0.3; kill -INT $PPID; sleep 20"
    assert run(*command(base, tmp_path / "out", "--train", train)) == 130
    assert "interrupted; the same command goes on where this stopped" in capsys.readouterr().err
    until = time.monotonic() + 10
    while not ended.exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert ended.exists()


def test_a_training_that_writes_nothing_is_told(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    told = refused(capsys, *command(base, tmp_path / "out", "--train", "true"))
    place = tmp_path / "out" / "partial-checkpoint.txt"
    assert f"to write $AVTT_CHECKPOINT, '{place}', found nothing there" in told


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--new", "space.seed=4"], "--new: expected fields of [model], got 'space'"),
        (["--set", 'model.options.other="labels.csv"'], "found 'labels.csv', 'old.txt'; say how"),
        (["--data", "DATA"], "--data: expected other images than the spec's"),
        (["--data", "OTHER"], "found none of 'bright'; there are 'dark', 'round'"),
        (
            ["--set", 'space.relations=["identity"]', "--set", "space.severities=[0]"],
            "beside identity",
        ),
    ],
)
def test_what_does_not_fit_is_told_in_a_sentence(
    base: Path,
    tmp_path: Path,
    more: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
):
    spec = SPEC.replace('"labels.csv"', f'"{base}/labels.csv"')
    (tmp_path / "data.toml").write_text(spec.replace('"images"', f'"{base}/images"'))
    text = (base / "labels.csv").read_text().replace("bright", "dark")
    (tmp_path / "labels.csv").write_text(text)
    other = (tmp_path / "data.toml").read_text().replace(f"{base}/labels.csv", "labels.csv")
    (tmp_path / "other.toml").write_text(other)
    places = {"DATA": str(tmp_path / "data.toml"), "OTHER": str(tmp_path / "other.toml")}
    given = [places.get(word, word) for word in more]
    assert message in refused(capsys, *command(base, tmp_path / "out", *given))
    assert not (tmp_path / "out").exists()  # said before anything is made


def test_a_new_model_is_named_as_one_likes(base: Path):
    table = read_spec(base / "SPEC.toml").model_dump()
    file = base / "old.txt"
    model = renewed(table, base, file, None)["model"]
    assert (model["name"], model["options"]) == ("net retrained", {"weights": str(file)})
    assert model["version"].startswith("content ")
    given = ["model.options.other={checkpoint}", "model.name=better"]
    model = renewed(table, base, file, given)["model"]
    assert model["options"] == {"weights": "old.txt", "other": file.as_posix()}
    assert model["name"] == "better"


@pytest.mark.slow
def test_shares_follow_what_an_audit_found(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out, audited = tmp_path / "out", tmp_path / "audited"
    given = ["audit", str(base / "SPEC.toml"), "--half-width", "0.45", "--targets", "relations"]
    assert run(*given, "--seed", "1", "--budget", "20", "--out", str(audited)) == 0
    more = ["--by", str(audited), "--certified-only", "--budget", "2"]
    assert run(*command(base, out, *more)) == 0
    rates = json.loads((audited / "result.json").read_text())["targets"]
    found = {row["relation"]: max(row["estimate"], 0.01) for row in rates}
    shares = json.loads((out / "retrain.json").read_text())["shares"]
    assert shares == pytest.approx({name: found[name] for name in ("rotation", "gaussian_noise")})
    assert run("audit", str(base / "SPEC.toml"), "--budget", "2", "--out", str(tmp_path / "b")) == 0
    told = refused(capsys, *command(base, tmp_path / "c", "--by", str(tmp_path / "b")))
    assert f"--by {tmp_path / 'b'}: expected an audit with a target for each relation" in told
    assert "found none for 'rotation', 'gaussian_noise'" in told
