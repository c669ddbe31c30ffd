"""What all experiments do alike: short runs, tables that fit a terminal, one page of everything."""

import importlib
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from adaptive_vtt.experiments import pages, program

ROOT = Path(__file__).parent.parent.parent


def lines_of(*arguments: str) -> list[str]:
    """What ``make bench`` would run."""
    if shutil.which("make") is None:
        pytest.skip("needs make")
    command = ["make", "-n", "bench", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def modules() -> list[str]:
    """The programs that the Makefile's ``bench`` runs."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    words = [word for line in text.splitlines() if "$(QUICK)" in line for word in line.split()]
    return [
        word.replace("$(EXPERIMENTS)", "adaptive_vtt.experiments")
        for word in words
        if word.startswith(("$(EXPERIMENTS).", "tests.campaigns."))
    ]


# -- short runs ----------------------------------------------------------------------------


def test_make_bench_runs_each_program_in_its_short_form_and_then_makes_the_page() -> None:
    runs = [line for line in lines_of("QUICK=--quick") if "python -m " in line]
    runs = [line for line in runs if ".experiments." in line or ".campaigns." in line]
    *programs, last = runs
    assert len(programs) == len(modules()) >= 40
    assert all("--quick" in line for line in programs)
    assert last.endswith("experiments.pages")


def test_a_short_run_leaves_the_slow_tests_out_and_a_whole_one_does_not() -> None:
    assert not [line for line in lines_of("QUICK=--quick") if "pytest" in line]
    assert [line for line in lines_of() if "pytest" in line]


@pytest.mark.parametrize("name", modules())
def test_each_program_of_make_bench_has_a_short_run(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        importlib.import_module(name).main(["--quick", "--help"])
    assert "--quick" in capsys.readouterr().out


def test_a_short_run_writes_into_a_folder_of_its_own() -> None:
    quick = {"seeds": 1}
    assert program.options("", [], quick=quick, seeds=9).out == Path("bench")
    chosen = program.options("", ["--quick"], quick=quick, seeds=9)
    assert (chosen.out, chosen.seeds) == (Path("bench/quick"), 1)
    chosen = program.options("", ["--quick", "--out", "here", "--seeds", "2"], quick=quick, seeds=9)
    assert (chosen.out, chosen.seeds) == (Path("here"), 2)


# -- tables that fit a terminal ------------------------------------------------------------


WIDE = pd.DataFrame(
    {
        "way": ["certify", "a name that is so long that it alone would take a whole line " * 2],
        **{f"figure number {k}": [0.5, None] for k in range(12)},
        "a heading that is so long that it alone would take a whole line of a terminal, too": 1,
        "note": ["words " * 40, ""],
    }
)


@pytest.mark.parametrize(
    ("table", "index"),
    [
        (WIDE, False),
        (WIDE.set_index(["way", "figure number 0"]), True),
        (WIDE.to_dict("records")[0], False),
        ("words " * 40, False),
    ],
    ids=["columns", "two levels", "row", "sentence"],
)
def test_no_line_is_wider_than_a_terminal(
    table: pd.DataFrame | program.Row | str, index: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    program.show(table, "title", index=index)
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= program.WIDTH == 80


# -- the page ------------------------------------------------------------------------------


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """A folder as ``make bench`` leaves it: three tables, one of a short run, and a figure."""
    folder = tmp_path / "bench"
    program.save_table(WIDE, folder / "wide.csv")
    long = pd.DataFrame({"seed": range(pages.ROWS + 5), "<b>calls</b>": 1234, "held": True})
    program.save_tables({"Many <i>rows</i>": long}, folder / "long.json")
    small = pd.DataFrame({"calls": [7]}, ["certify"])
    program.save_table(small, folder / "quick" / "small.csv", index=True)
    (folder / "figure3.html").write_text("<!doctype html>")
    return folder


def test_the_page_has_every_table_and_figure_and_says_which_runs_were_short(bench: Path) -> None:
    pages.main(["--out", str(bench)])
    page = (bench / "index.html").read_text(encoding="utf-8")
    assert "3 tables, 1 of them of short runs, which measure nothing" in page
    assert program.machine() in page
    assert page.index("<h2>wide</h2>") < page.index("<h2>small (short run)</h2>")
    assert '<a href="figure3.html">' in page
    assert '<a href="quick/small.csv">' in page
    assert "And 5 more rows." in page
    assert "&lt;b&gt;calls" in page
    assert "Many &lt;i&gt;rows" in page
    assert "<td>yes</td>" in page
    assert "Unnamed" not in page
    pages.main(["--out", str(bench)])  # the page itself is no figure
    assert (bench / "index.html").read_text(encoding="utf-8").count('href="index.html"') == 0
