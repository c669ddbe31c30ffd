"""What a running audit says of itself: how far it is, at any width, and without a terminal."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_vtt import Audit, QuestionSpace, __version__, audit
from adaptive_vtt.audit import Progress as Step
from adaptive_vtt.audit.progress import share_done
from adaptive_vtt.certify.status import TargetStatus
from adaptive_vtt.cli import audit as demo
from adaptive_vtt.cli import progress, run_folder
from adaptive_vtt.cli.progress import Live, clock, counting, fitted, time_left
from adaptive_vtt.engine.options import Certify, Limits
from adaptive_vtt.families import Overall
from adaptive_vtt.stopping import State
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.utils.files import write_bytes
from adaptive_vtt.utils.image_codec import png
from tests.helpers.command_line import refused, run, shown

# -- how far ------------------------------------------------------------------------------


def state(*half_widths: float, calls: int = 0, **fields: Any) -> State:
    sides = fields.pop("sides", (None,) * len(half_widths))
    targets = tuple(
        TargetStatus(id=Overall(), estimate=0.2, lower=0.2, upper=0.2 + 2 * w, decided=side)
        for w, side in zip(half_widths, sides, strict=True)
    )
    return State(calls, calls, 1.0, np.ones((1, 2)), targets=targets, **fields)


def share(standing: State, cost: float = 0.0, limits: Limits | None = None, **certify: Any) -> Any:
    return share_done(standing, cost, Certify(**certify), limits or Limits())


def test_an_audit_starts_at_nothing_and_ends_at_all() -> None:
    assert share(state(0.5, 0.5), half_width=0.1) == pytest.approx(0)
    assert share(state(0.1, 0.08), half_width=0.1) == pytest.approx(1)
    # 1 / 0.2^2 of 1 / 0.1^2, both above the 1 / 0.5^2 of nothing known
    assert share(state(0.2, 0.2), half_width=0.1) == pytest.approx((25 - 4) / (100 - 4))


def test_it_ends_at_the_first_limit_and_when_all_goals_are_reached() -> None:
    half = state(0.5, calls=50, cost=1.0)
    assert share(half, limits=Limits(budget=100)) == pytest.approx(0.5)
    assert share(half, 1.0, Limits(budget=100, max_cost=1.25)) == pytest.approx(0.8)
    assert share(half) is None
    both = state(0.1, 0.1, sides=("above", "open"))
    assert share(both, at_most=0.5) == pytest.approx(0.5)
    assert share(both, at_most=0.5, half_width=0.1) == pytest.approx(0.5)
    assert share(state(0.0), half_width=0.1, limits=Limits(budget=9)) == 1


@given(st.lists(st.floats(0.0, 0.5), min_size=1, max_size=5), st.floats(0.01, 0.49))
def test_narrower_intervals_are_never_a_step_back(widths: list[float], goal: float) -> None:
    before = share(state(*widths), half_width=goal)
    after = share(state(*(0.9 * w for w in widths)), half_width=goal)
    assert 0 <= before <= after + 1e-12 <= 1 + 1e-9


def test_the_time_that_is_left_follows_the_pace_since_this_run_began() -> None:
    assert time_left(0.5, 0.25, 60.0) == "~2:00 left"
    assert not any([time_left(None, 0, 9), time_left(0.26, 0.25, 9), time_left(1.0, 0, 9)])
    assert [clock(s) for s in (0, 65.4, 7384)] == ["0:00", "1:05", "2:03:04"]


# -- the line -----------------------------------------------------------------------------


@given(
    st.lists(st.text("abc ", max_size=12), max_size=6),
    st.text("12 ", max_size=30),
    st.text("xyz", max_size=40),
    st.data(),
)
def test_a_line_never_exceeds_its_width(
    parts: list[str], figure: str, name: str, data: Any
) -> None:
    width = data.draw(st.integers(0, 90))
    assert len(fitted(parts, figure, name, width)) <= max(width, 0)


def live(monkeypatch: pytest.MonkeyPatch, columns: int, **options: Any) -> Live:
    monkeypatch.setenv("COLUMNS", str(columns))
    space = QuestionSpace(tiny_dataset(20, 2), ["identity", "rotation"])
    audit = Audit(space, ScriptedModel(), self_taught=False, surrogate=False, **options)
    return Live(audit, quiet=False)


OPTIONS: dict[str, Any] = {"half_width": 0.3, "targets": ["overall"], "seed": 1}


@pytest.mark.parametrize("options", [OPTIONS, {"budget": 6, "seed": 1}])
def test_an_audit_is_shown_at_any_width(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    shows = live(monkeypatch, 40, **options)
    lines: list[tuple[int, str]] = []

    def look(step: Step) -> None:
        shows.update(step)
        lines.extend((width, shows.line(width)) for width in (20, 40, 80, 200))

    with shows:
        shows._audit.run(look)
    assert lines
    for width, line in lines:
        assert len(line) <= width
        assert line.startswith("asking ")
        wanted = width >= 80 and "half_width" in options
        assert ("certified  +-" in line and "overall" in line) == wanted
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert max(map(len, re.split(r"[\r\n]", drawn))) <= 40


def test_the_pace_is_that_of_the_last_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    shows = live(monkeypatch, 80, **{"budget": 1000, "seed": 1})
    # a call a second, after 100 seconds of preparation; ten calls a second from second 200 on
    for passed, calls, left in [
        (100, 1, ""),
        (160, 61, "~15:39 left"),
        (200, 101, "~14:59 left"),
        (300, 401, "~5:00 left"),
        (450, 850, "~0:50 left"),
    ]:
        now[0] = float(passed)
        shows.update(Step(state(calls=calls), 0.0, "c", 0))
        assert re.findall("~.* left", shows.line(200)) == [left] * bool(left)


def test_without_a_terminal_a_line_is_written_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    shows = live(monkeypatch, 80, **OPTIONS)
    step, written = Step(state(0.4, calls=7), 1.5, "c", 0), []
    with shows:
        capsys.readouterr()
        for _ in range(1000):  # 1000 s, a step a second
            now[0] += 1
            shows.update(step)
            if line := capsys.readouterr().err:
                written.append((now[0], line))
    assert [second for second, _ in written] == [10, 20, 40, 80, 160, 320, 620, 920]
    assert re.match(r"asking \d+%  7 calls  \$1\.50  0/1 certified  \+-40.0 points", written[0][1])


# -- the report, and what is asked of the program -----------------------------------------


def test_the_version_is_told_and_shells_complete_commands_and_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert shown("--version") == f"adaptive-vtt {__version__}\n"
    monkeypatch.setenv("_AVTT_COMPLETE", "complete_bash")
    for words, expected in (("avtt au", "audit"), ("avtt audit --half", "--half-width")):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
        assert expected in shown().split()


EASY = ["--half-width", "0.4", "--targets", "overall", "--set", "certify.self_taught=false"]


@pytest.mark.slow
def test_the_report_is_there_before_the_comparison_and_is_written_again_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, opened, begun = tmp_path / "demo", [], []
    begin = demo.build_audit

    def building(*arguments: Any, **options: Any) -> Any:
        whole = [(out / name).is_file() for name in ("report.html", "result.json", "journal.db")]
        assert whole == [True] * 3
        (out / "report.html").write_text("from before")
        made = begin(*arguments, **options)
        begun.append((made.sampling.strategy.name, made.belief.losses is not None))
        return made

    monkeypatch.setattr(demo, "build_audit", building)
    monkeypatch.setattr(run_folder.webbrowser, "open", lambda url: opened.append(url) or True)
    printed = " ".join(shown("audit", "--demo", *EASY, "--open", "--out", str(out)).split())
    assert opened == [(out / "report.html").resolve().as_uri()]
    kept = json.loads((out / "baselines.json").read_text())
    assert list(kept) == ["predicted", "uniform"]
    for kind, one in zip(("same predictions", "no predictions"), kept.values(), strict=True):
        amount = f"{one['calls']:,}; this audit took "
        if not one["certified"]:
            amount = f"more than {one['calls']:,}; the comparison stopped there; this audit took "
        assert f"random sampling, {kind}: {amount}" in printed
    assert begun == [("random", True), ("random", False)]
    assert (out / "report.html").read_text() != "from before"
    assert run("verify", str(out)) == 0


@pytest.mark.slow
def test_ctrl_c_in_the_comparison_leaves_a_complete_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupting(Live):
        def update(self, step: Step) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(demo, "Live", Interrupting)
    out = tmp_path / "demo"
    output = refused("audit", "--demo", *EASY, "--out", str(out), code=130)
    assert f"the comparison is left out; the audit is complete: {out / 'report.html'}" in output
    assert not (out / "baselines.json").exists()
    assert run("verify", str(out)) == 0


def test_where_stderr_is_no_terminal_what_is_counted_is_said_now_and_then(capsys, monkeypatch):
    clock = iter([0.0, 5.0, 11.0, 15.0])
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with counting("auditing", 3, quiet=False) as advance:
        for _ in range(3):
            advance(1)
    assert capsys.readouterr().err == "auditing: 2 of 3, ~0:06 left\n"


# -- names that a terminal might take for something else --------------------------------------


def test_one_line_in_python_names_the_data_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "site:x:1 [b]"
    for name in ("yes", "no"):
        write_bytes(folder / name / "0.png", png(np.zeros((4, 4, 1), np.uint8)))
    audit(folder, lambda images: np.ones((len(images), 2)), budget=1, on_progress=True)
    assert "read: site:x:1 [b]" in capsys.readouterr().err
