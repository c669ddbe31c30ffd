"""Pictures written out, captioned elsewhere, and audited as recorded."""

import json
import shutil
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from adaptive_vtt import QuestionSpace
from adaptive_vtt.experiments.reic.drawn_scenes import scenes
from adaptive_vtt.journal import SQLiteJournal
from adaptive_vtt.oracles import ReducedCaptions
from adaptive_vtt.relations import reic
from adaptive_vtt.results.export.prompt_images import write_pictures
from tests.helpers.captioned import write_captions
from tests.helpers.command_line import run


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all pictures of a small space, captioned."""
    folder = tmp_path_factory.mktemp("recorded") / "pictures"
    small = QuestionSpace(
        scenes(4), reic.relations(follow_ups=2), oracle=ReducedCaptions(occlusion=False)
    )
    assert write_pictures(small, folder) == 4 + small.size
    write_captions(folder, seed=1)
    (folder / "SPEC.toml").write_text(
        '[dataset]\nkind = "adaptive_vtt.experiments.reic.drawn_scenes:scenes"\n'
        "[dataset.options]\ncount = 4\n"
        '[model]\nkind = "recorded"\n'
        'answers = "answers.csv"\n[space]\nrelations = ["reic"]\nfollow_ups = 2\n'
        '[oracle]\nkind = "captions"\nocclusion = false\n'
    )
    return folder


@pytest.mark.slow
def test_recorded_captions_are_audited_labelled_and_reported(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert run("audit", str(recorded / "SPEC.toml"), "--out", str(out), "--json") == 0
    assert json.loads(capsys.readouterr().out)["questions"] == 24
    assert run("verify", str(out)) == 0
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Caption violations" in page
    with closing(SQLiteJournal(out / "journal.db")) as journal:
        broken = [a for c in journal.calls() for a in c.answers if a.loss]
    assert broken
    assert all(a.answer_text in page for a in broken if a.answer_text)
    assert run("label", str(out), "--reader", "ann") == 0
    assert run("export", str(out), "--failures", str(tmp_path / "failures"), "--run-code") == 0


def unfilled(text: str) -> str:
    return pd.read_csv(StringIO(text), dtype=str).assign(caption="").to_csv(index=False)


def elsewhere(text: str) -> str:
    return text.replace("scene-0-00002,reic/stretch,2,", "elsewhere,reic/stretch,2,", 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            elsewhere,
            "expected a caption of sample 'scene-0-00002', relation 'reic/stretch', severity 2",
        ),
        (unfilled, "expected captions, got 28 rows without any"),
    ],
)
def test_faulty_recordings_are_refused_in_a_sentence(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Any, sentence: str
) -> None:
    text = (recorded / "answers.csv").read_text()
    assert change(text) != text
    (tmp_path / "answers.csv").write_text(change(text))
    shutil.copy(recorded / "SPEC.toml", tmp_path)
    assert run("audit", str(tmp_path / "SPEC.toml"), "--out", str(tmp_path / "r")) == 2
    output = " ".join(capsys.readouterr().err.split())
    assert sentence in output
    assert "answers.csv" in output
    assert not (tmp_path / "r" / "journal.db").exists()
