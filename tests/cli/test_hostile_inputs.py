"""What a command is given may be no file, too large, too deep or no text: a line says so."""

import json
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt.datasets.formats import table_file
from tests.helpers.command_line import plain_start, refused, run

DEEP = "[" * 100_000
PIPE = "expected a file, got a pipe or a device"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes are files there")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a SPEC.toml, its data, and a short audit in ``run``."""
    home = tmp_path_factory.mktemp("kept")
    spec = plain_start(home, half_width=0.4, budget=4)
    assert run("audit", str(spec), "--sample", "--targets", "overall", "--out", f"{home}/run") == 0
    return home


@pytest.fixture
def home(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy to spoil, as the folder one stands in; what waits for a pipe is ended."""
    shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def waits(*_: object) -> None:
        raise AssertionError("a command waited")

    before = signal.signal(signal.SIGALRM, waits)
    signal.alarm(60)
    yield tmp_path
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pipe(name: str) -> None:
    Path(name).unlink(missing_ok=True)
    os.mkfifo(name)


def spoil_losses(value: object) -> None:
    with closing(sqlite3.connect("run/journal.db")) as journal, journal:
        journal.execute("UPDATE answers SET loss = ?", [value])


def spec(section: str, line: str) -> None:
    text = Path("SPEC.toml").read_text()
    Path("SPEC.toml").write_text(text.replace(f"[{section}]", f"[{section}]\n{line}"))


AUDIT = ["audit", "SPEC.toml", "--budget", "2", "--out", "new"]
REFUSED: dict[str, tuple[Callable[[], Any], list[str], str]] = {
    "a spec": (lambda: pipe("SPEC.toml"), AUDIT, PIPE),
    "a device": (lambda: None, ["plan", "/dev/zero", "--group", "a"], "expected a CSV of items"),
    "items": (lambda: pipe("items.csv"), ["plan", "items.csv"], PIPE),
    "labels": (lambda: pipe("labels.csv"), AUDIT, PIPE),
    "an image": (lambda: pipe("images/shape-00.png"), AUDIT, "images/shape-00.png"),
    "answers": (
        lambda: (pipe("a.csv"), spec("certify", 'proxies = {p = "a.csv"}')),
        AUDIT,
        PIPE,
    ),
    "a journal": (lambda: pipe("run/journal.db"), ["verify", "run"], "run/journal.db"),
    "a deep result": (
        lambda: Path("run/result.json").write_text(DEEP),
        ["verify", "run"],
        "expected the result of an audit, got something else",
    ),
    "a huge loss": (lambda: spoil_losses(1e308), [*AUDIT, "--after", "run"], "was altered"),
    "a name that is no text": (
        lambda: shutil.copy(b"images/shape-00.png", b"images/\xff.png"),
        ["init", "new", "--data", "images"],
        "expected file names in UTF-8, got other bytes",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_refused_in_a_line(case: str, home: Path) -> None:
    prepare, arguments, sentence = REFUSED[case]
    prepare()
    assert sentence in refused(*arguments)


@pytest.mark.parametrize("spoilt", ["a pipe", "deep JSON"])
def test_what_lies_beside_a_run_does_not_keep_its_report_from_being_written(
    spoilt: str, home: Path
) -> None:
    """Files of others, in a folder whose name is no text."""
    Path("run/realism.json").write_text('{"predicted": 5}')
    if spoilt == "a pipe":
        pipe("run/baselines.json")
    else:
        Path("run/baselines.json").write_text(DEEP)
    os.rename(b"run", b"r\xff")
    (folder,) = (f for f in home.iterdir() if (f / "journal.db").is_file())
    (folder / "report.html").unlink()
    assert run("report", str(folder)) == 0
    assert (folder / "report.html").stat().st_size > 10_000
    assert json.loads((folder / "result.json").read_text())["targets"]


@pytest.mark.parametrize("columns", ["0", "20", "80"])
def test_runs_are_listed_in_any_terminal(
    columns: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of no width, and one that knows ASCII alone."""
    monkeypatch.setenv("COLUMNS", columns)
    os.rename("run", "rün")
    with open("shown", "w", encoding="ascii") as shown:
        monkeypatch.setattr(sys, "stdout", shown)
        assert run("runs", ".") == 0
    assert len(Path("shown").read_text().splitlines()) > 3


def test_a_full_disk_ends_a_census_with_what_to_do(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    resource, labels = pytest.importorskip("resource"), home / "labels.csv"
    labels.write_text("\n".join(labels.read_text().splitlines()[:20]))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (130_000, before[1]))
    try:
        assert run("census", "SPEC.toml", "--out", "whole") == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    output = capsys.readouterr().err.splitlines()[-1]
    assert "cannot be written" in output
    assert "once that is mended" in output or "run the same command again" in output
    assert run("resume", "whole") == 0


def test_a_parquet_file_is_bounded_before_and_while_it_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    many, long = tmp_path / "many.parquet", tmp_path / "long.parquet"
    monkeypatch.setattr(table_file, "MAX_CELLS", 20_000)
    monkeypatch.setattr(table_file, "MAX_BYTES", 10**6)
    parquet.write_table(arrow.table({"x": np.ones(21_000, "int8")}), many)
    parquet.write_table(arrow.table({"x": ["a" * 100_000] * 20}), long)
    assert max(many.stat().st_size, long.stat().st_size) < 200_000
    for path, sentence in ((many, "at most 20,000 cells"), (long, "when unpacked, got more")):
        with pytest.raises(table_file.InputError, match=sentence):
            table_file.read_rows(path)
    fits = tmp_path / "fits.parquet"
    parquet.write_table(arrow.table({"x": [f"{k:0100000d}" for k in range(6)]}), fits)
    assert len(table_file.read_rows(fits)) == 6  # 600 kB
