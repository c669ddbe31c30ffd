"""A function that follows an audit: what it is given, and that nothing it does costs the audit."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import adaptive_vtt as avtt
from adaptive_vtt import Audit, QuestionSpace, Versus
from adaptive_vtt.audit import Progress
from adaptive_vtt.certify.status import TargetStatus
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from tests.helpers.command_line import plain_start, run
from tests.helpers.snippets import ROOT, blocks

pytestmark = pytest.mark.usefixtures("undrawn")

SPACE = QuestionSpace(tiny_dataset(20, 2), ["identity", "gaussian_noise"])
OPTIONS: dict[str, Any] = {"half_width": 0.05, "targets": ["overall", "relations"]}
OPTIONS |= {"budget": 25, "surrogate": False, "seed": 1}


# -- from Python ----------------------------------------------------------------------------


def test_a_run_calls_every_function_with_its_progress() -> None:
    calls: list[list[int]] = [[], []]
    hooks = [lambda progress, k=k: calls[k].append(progress.calls) for k in (0, 1)]
    Audit(SPACE, ScriptedModel(), **{**OPTIONS, "budget": 3}).run([*hooks, False])
    assert calls == [[1, 2, 3], [1, 2, 3]]
    calls[0].clear()
    Versus(SPACE, ScriptedModel(), ScriptedModel(seed=1), budget=4, surrogate=False).run(hooks[0])
    avtt.audit(tiny_dataset(20, 2), ScriptedModel(), half_width=0.4, budget=2, on_progress=hooks[0])
    assert calls[0] == [2, 4, 1, 2]  # a pair is two calls


def followed(audit: Audit | Versus) -> tuple[Any, Progress, list[TargetStatus]]:
    """The result of a run, its last progress, and the targets that the function read of it."""
    seen: list[tuple[Progress, list[TargetStatus]]] = []
    result = audit.run(lambda progress: seen.append((progress, progress.targets)))
    return result, *seen[-1]


def test_the_last_progress_is_what_the_result_says(tmp_path: Path) -> None:
    for budget in (15, 80):  # the second goes on with the first
        options = {**OPTIONS, "half_width": 0.2, "budget": budget}
        with Audit(SPACE, ScriptedModel(), **options, journal=tmp_path / "journal.db") as audit:
            result, last, targets = followed(audit)
        for figure in ("calls", "questions", "cost"):
            assert getattr(last, figure) == getattr(result, figure)
        assert last.elapsed > 0
        assert last.total == len(result.targets) == len(targets)
        assert last.certified == result.targets["certified"].sum()
        assert last.half_width == pytest.approx(result.targets["half_width"].max())
        for target, stated in zip(targets, result.statuses, strict=True):
            assert target.row() == pytest.approx(stated.row())
    assert result.calls > 15


def test_of_a_comparison_targets_are_differences() -> None:
    models = ScriptedModel(), ScriptedModel(seed=1)
    with Versus(SPACE, *models, budget=20, seed=1, surrogate=False) as versus:
        verdict, last, (target,) = followed(versus)
    stated = verdict.targets.iloc[0]
    assert target.difference == pytest.approx((stated["delta"], stated["lower"], stated["upper"]))
    assert last.half_width == pytest.approx((stated["upper"] - stated["lower"]) / 2)


def test_an_audit_that_explores_certifies_no_target() -> None:
    _, last, targets = followed(Audit(SPACE, ScriptedModel(), budget=3, seed=1))
    assert (last.total, last.certified, last.half_width, targets) == (0, 0, None, [])


def test_a_function_that_raises_is_one_warning_and_changes_nothing() -> None:
    seen: list[int] = []

    def send(progress: Progress) -> None:
        seen.append(progress.calls)
        if progress.calls == 2:
            raise ConnectionError("the server is down")

    with pytest.warns(UserWarning, match="on_progress: send raised ConnectionError: the serv") as w:
        result = Audit(SPACE, ScriptedModel(), **OPTIONS).run(send)
    assert len(w) == 1
    assert "test_on_progress.py, line" in str(w[0].message)
    assert seen == [1, 2]
    assert result.targets.equals(Audit(SPACE, ScriptedModel(), **OPTIONS).run().targets)


def test_ctrl_c_in_a_function_interrupts_the_audit() -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Audit(SPACE, ScriptedModel(), **OPTIONS).run(interrupt)


# -- from SPEC.toml -------------------------------------------------------------------------

LIMITS = ["--half-width", "0.3", "--seed", "1"]
NOTE = """
import pathlib
LINES = pathlib.Path(__file__).with_name("lines.txt")

def note(progress):
    with LINES.open("a") as file:
        print(progress.calls, file=file)
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A SPEC.toml whose audits append their calls to lines.txt beside it."""
    path = plain_start(tmp_path / "start")
    text = path.read_text(encoding="utf-8")
    assert text.count("[audit]\n") == 1
    path.write_text(text.replace("[audit]\n", '[audit]\non_progress = "note.py:note"\n'))
    (tmp_path / "start" / "note.py").write_text(NOTE)
    return path


def lines(spec: Path) -> list[int]:
    """The calls noted since the last time."""
    path = spec.with_name("lines.txt")
    noted = [*map(int, path.read_text().split())] if path.is_file() else []
    path.unlink(missing_ok=True)
    return noted


def test_a_spec_names_it_and_resume_runs_it_only_unchanged(spec: Path, capsys: Any) -> None:
    out = str(spec.parent / "run")
    assert run("audit", str(spec), *LIMITS, "--budget", "4", "--out", out) == 0
    assert lines(spec) == [1, 2, 3, 4]
    assert run("resume", out, "--budget", "6") == 0
    assert lines(spec) == [5, 6]
    assert run("report", out) == 0
    assert lines(spec) == []  # looking at a run runs nothing of it

    spec.with_name("note.py").write_text(NOTE.replace("progress.calls", "-1"))
    for budget in ("8", "9"):
        capsys.readouterr()
        assert run("resume", out, "--budget", budget) == 0
        errors = capsys.readouterr().err
        assert "'note.py:note' was changed after the audit began; the audit continues" in errors
    assert lines(spec) == []


def test_a_name_that_is_no_function_is_refused_before_anything_is_asked(spec: Path, capsys: Any):
    command = ["audit", str(spec), *LIMITS, "--budget", "3", "--out", str(spec.parent / "run")]
    for name, expected in {
        "note.py:nota": "audit.on_progress: note.py: unknown name 'nota'; did you mean 'note'",
        "note": "expected 'package.module:name' or 'file.py:name', got 'note'",
        "note.py:LINES": "audit.on_progress: expected 'note.py:LINES' to be a function, got",
    }.items():
        assert run(*command, "--set", f"audit.on_progress={name}") == 2
        assert expected in capsys.readouterr().err
    assert run(*command) == 0  # nothing was asked, so the same folder will do
    assert lines(spec) == [1, 2, 3]


# -- the recipes of docs/how-to/view.md -----------------------------------------------------


PROGRAM = """
import to_{tracker}
from tests.audit.test_on_progress import OPTIONS, SPACE, Audit, ScriptedModel
Audit(SPACE, ScriptedModel(), **OPTIONS).run(to_{tracker}.send)
"""


@pytest.mark.parametrize("tracker", ["mlflow", "wandb", "tensorboard"])
def test_recipes_run(tracker: str, tmp_path: Path) -> None:
    """In a process of its own: trackers end what they began only when Python ends."""
    pytest.importorskip(tracker, reason=f"needs pip install {tracker}")
    page = (ROOT / "docs" / "how-to" / "view.md").read_text(encoding="utf-8")
    (recipe,) = [block for block in blocks(page) if block.file == f"to_{tracker}.py"]
    (tmp_path / f"to_{tracker}.py").write_text(recipe.text)
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, [tmp_path, ROOT, *sys.path])),
        "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path / 'mlflow.db'}",
        "WANDB_MODE": "offline",
    }
    program = [sys.executable, "-c", PROGRAM.format(tracker=tracker)]
    done = subprocess.run(
        program, cwd=tmp_path, env={**os.environ, **variables}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "on_progress" not in done.stderr
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for figure in (b"upper/overall", b"lower/relation"):
        assert figure in kept
