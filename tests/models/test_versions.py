"""What a model is made of is its version: files that its options name are read and compared."""

import os
from pathlib import Path

import numpy as np
import pytest

from adaptive_vtt import Audit
from adaptive_vtt.errors import JournalError
from adaptive_vtt.journal import MemoryJournal, read_journal
from adaptive_vtt.models import versions
from adaptive_vtt.models.pair import Pair
from adaptive_vtt.models.versions import (
    changed_content,
    changed_file,
    files_in,
    hash_of_path,
    version_of,
)
from adaptive_vtt.results.cautions import cautions
from adaptive_vtt.results.run import Run
from adaptive_vtt.types import Answer
from tests.helpers.command_line import run
from tests.helpers.hostile import PLAIN, space

PARTS = """
import numpy as np
import pandas as pd
from pathlib import Path
from adaptive_vtt.datasets import from_table
from adaptive_vtt.types import Answer

def greys():
    images = [np.full((8, 8, 3), 8 * i, np.uint8) for i in range(30)]
    return from_table(images, pd.DataFrame({"light": [i % 2 for i in range(30)]}))

class Net:
    answers = "all"

    def __init__(self, weights, **other):
        self.p = float((Path(__file__).parent / weights["best"]).read_text())

    def ask(self, prompts):
        return [Answer((self.p,)) for _ in prompts]
"""
SPEC = """
[dataset]
kind = "parts.py:greys"
[model]
kind = "parts.py:Net"
options = { weights = { best = "best.txt" }, epochs = 3, mode = "fast" }
[certify]
half_width = 0.3
surrogate = false
self_taught = false
[audit]
seed = 1
"""


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "parts.py").write_text(PARTS)
    (tmp_path / "best.txt").write_text("0.9")
    (tmp_path / "SPEC.toml").write_text(SPEC)
    return tmp_path / "SPEC.toml"


def test_an_audit_is_not_resumed_where_the_weights_changed(spec, capsys):
    out, weights = spec.parent / "run", spec.parent / "best.txt"
    run("audit", str(spec), "--budget", "6", "--out", str(out))
    before = len(read_journal(out / "journal.db").calls())
    weights.write_text("0.1")
    capsys.readouterr()
    assert run("resume", str(out), "--budget", "12") == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "the file 'best.txt' that the model is made of changed since the audit began" in error
    assert len(read_journal(out / "journal.db").calls()) == before
    weights.write_text("0.9")
    assert run("resume", str(out), "--budget", "12") == 0


def test_a_comparison_of_a_file_with_itself_is_a_caution(spec):
    other, same = spec.parent / "after.toml", "both models have one name and are made of the same"
    (spec.parent / "after.txt").write_text("0.1")
    for weights in ("best.txt", "after.txt"):
        other.write_text(SPEC.replace("best.txt", weights))
        folder = spec.parent / f"run {weights}"
        run("versus", str(spec), str(other), "--budget", "8", "--out", str(folder))
        with Run.opened(folder) as finished:
            shown = any(same in caution for caution in cautions(finished))
            assert shown == (weights == "best.txt")


class Kept:
    """A user's own model, made in Python."""

    answers = "all"

    def __init__(self, weights, name="kept"):
        self.weights, self.name = weights, name
        self.files = 3  # means nothing to an audit
        self.model_files: tuple[Path, ...] = ()

    def ask(self, prompts):
        return [Answer((1.0,) * len(prompt.concepts)) for prompt in prompts]


def test_paths_given_to_a_constructor_are_files_of_the_model(tmp_path):
    weights, journal = tmp_path / "w.bin", MemoryJournal()
    weights.write_bytes(b"1")
    Audit(space(), Kept(weights), **PLAIN, budget=3, journal=journal).run()
    weights.write_bytes(b"2")
    with pytest.raises(JournalError, match=r"the file 'w.bin' that the model is made of changed"):
        Audit(space(), Kept(weights), **PLAIN, budget=5, journal=journal)
    weights.write_bytes(b"1")
    assert Audit(space(), Kept(weights), **PLAIN, budget=5, journal=journal).run().calls == 5


def test_code_is_a_part_of_the_version_next_to_files_that_the_model_keeps(tmp_path):
    weights, code = tmp_path / "w.bin", tmp_path / "code.py"
    weights.write_bytes(b"1")
    code.write_text("x = 1")
    one = version_of(Kept(weights), code, {"w.bin": weights})
    code.write_text("x = 2")
    two = version_of(Kept(weights), code, {"w.bin": weights})
    assert one != two
    assert str(one).count("w.bin") == 1
    assert changed_file(two, one) is None


def test_of_a_pair_the_model_is_named_whose_content_changed():
    a, b = Kept(Path("gone")), Kept(Path("gone"))
    both, then = Pair(a, b), "content 1 / 2"
    assert changed_content(both, "content 1 / 3", then) is None
    a.model_files, b.model_files = (Path("a.pt"),), (Path("b.pt"),)
    assert changed_content(both, then, then) is None
    assert changed_content(both, "content 1 / 3", then) == "b.pt"
    assert changed_content(both, "content 3 / 2", then) == "a.pt"


def test_folders_are_hashed_and_what_cannot_be_is_a_caution(tmp_path, monkeypatch):
    (tmp_path / "net" / "__pycache__").mkdir(parents=True)
    (tmp_path / "net" / "a.bin").write_bytes(b"1")
    before = hash_of_path(tmp_path / "net")
    (tmp_path / "net" / "__pycache__" / "a.pyc").write_bytes(b"1")
    assert hash_of_path(tmp_path / "net") == before
    (tmp_path / "net" / "b.bin").write_bytes(b"1")
    assert hash_of_path(tmp_path / "net") != before
    os.mkfifo(tmp_path / "pipe")
    assert hash_of_path(tmp_path / "pipe") == versions.UNKNOWN
    journal = MemoryJournal()
    with Audit(space(), Kept(tmp_path / "pipe"), **PLAIN, budget=3, journal=journal) as audit:
        audit.run()
    assert any("as 'pipe' could not be hashed" in caution for caution in cautions(Run.of(journal)))
    monkeypatch.setattr(versions, "MOST_FILES", 1)
    assert hash_of_path(tmp_path / "net") == versions.UNKNOWN


def test_a_large_file_is_hashed_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(versions, "WHOLE", 1_000)
    monkeypatch.setattr(versions, "BLOCK", 10)
    path = tmp_path / "large.bin"
    data = np.random.default_rng(0).bytes(5_000)
    hashes = set()
    for content in (data, b"x" + data[1:], data[:-1] + b"x", data + b"x"):
        path.write_bytes(content)
        hashes.add(hash_of_path(path))
    assert len(hashes) == 4


def test_a_text_that_equals_a_file_names_it_only_where_it_is_a_path(tmp_path):
    for name in ("blur", "gpt-4.1", "a.npz", "nets/blur"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert files_in({"mode": "blur", "model": "gpt-4.1", "words": ["blur"]}, tmp_path) == {}
    for options in ({"weights": "blur"}, {"mode": "nets/blur"}, {"paths": ["blur"]}, Path("blur")):
        assert [*files_in(options, tmp_path)] == ["blur"]
    assert [*files_in({"mode": "a.npz"}, tmp_path)] == ["a.npz"]


def test_files_of_a_version_are_compared_by_name(tmp_path):
    for name in ("a.bin", "b.bin"):
        (tmp_path / name).write_text(name)
    files = files_in({"x": ["a.bin", {"y": "b.bin"}], "z": "c.bin", "w": ""}, tmp_path)
    assert files_in({"log_file": "a.bin", "cache": ["b.bin"]}, tmp_path) == {}
    assert files == {name: tmp_path / name for name in ("a.bin", "b.bin")}
    one = versions.with_files("content abc", files)
    (tmp_path / "b.bin").write_text("other")
    two = versions.with_files("content abc", files)
    assert changed_file(one, one) is None
    assert changed_file(two, one) == "b.bin"
    assert changed_file(f"{one} / {two}", f"{two} / {one}") is not None
    assert versions.without_hashes(versions.with_files("3", files)) == "3"
    assert version_of(Kept(tmp_path / "gone")) is None
