"""Figures of a running audit elsewhere: what is told, and that nothing of it can stop an audit."""

import json
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import adaptive_vtt as avtt
from adaptive_vtt import Audit, QuestionSpace, Versus
from adaptive_vtt.cli.init import write_start
from adaptive_vtt.config import parse_spec, read_spec
from adaptive_vtt.errors import InputError
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.results.tracking import backend, following, tracked
from adaptive_vtt.results.tracking.following import LONGEST, settings
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from tests.helpers.command_line import run

SPACE = QuestionSpace(tiny_dataset(20, 2), ["identity", "gaussian_noise"])
OPTIONS: dict[str, Any] = {
    "half_width": 0.05,
    "budget": 25,
    "targets": ["overall", "relations"],
    "surrogate": False,
    "seed": 1,
}


class Kept:
    """A back end that keeps what it is told, and fails or hangs when it shall."""

    def __init__(self, fails: str = "", hangs: Event | None = None) -> None:
        self.fails, self.hangs = fails, hangs
        self.settings: Mapping[str, Any] = {}
        self.audit = self.name = ""
        self.figures: list[tuple[int, Mapping[str, float]]] = []
        self.files: list[str] = []
        self.finished: bool | None = None

    def _meet(self, method: str) -> None:
        if self.hangs is not None:
            self.hangs.wait(60)
        if self.fails == method:
            raise ConnectionError(f"no way to https://me:hush@host for hush-{method}")

    def begin(self, audit: str, name: str, settings: Mapping[str, Any]) -> None:
        self._meet("begin")
        self.audit, self.name, self.settings = audit, name, settings

    def log(self, calls: int, figures: Mapping[str, float]) -> None:
        self._meet("log")
        self.figures.append((calls, figures))

    def keep(self, files: Sequence[Path]) -> None:
        self._meet("keep")
        self.files += [file.name for file in files]

    def end(self, finished: bool) -> None:
        self._meet("end")
        self.finished = finished


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that puts a ``Kept`` in the place of every tracker."""

    def place(**options: Any) -> Kept:
        found = Kept(**options)
        monkeypatch.setattr(following, "backend", lambda *_: found)
        return found

    return place


# -- one hook -------------------------------------------------------------------------------


def test_a_run_calls_every_hook_with_its_progress_by_either_name() -> None:
    calls: list[list[int]] = [[], []]
    hooks = [lambda step, k=k: calls[k].append(step.state.calls) for k in (0, 1)]
    Audit(SPACE, ScriptedModel(), **{**OPTIONS, "budget": 3}).run([*hooks, False])
    assert calls == [[1, 2, 3], [1, 2, 3]]
    for way in ("on_progress", "progress"):
        calls[0].clear()
        Audit(SPACE, ScriptedModel(), **{**OPTIONS, "budget": 3}).run(**{way: hooks[0]})
        Versus(SPACE, ScriptedModel(), ScriptedModel(seed=1), budget=4).run(**{way: hooks[0]})
        options: Any = {way: hooks[0], "half_width": 0.4, "budget": 2}
        avtt.audit(tiny_dataset(20, 2), ScriptedModel(), **options)
        assert calls[0] == [1, 2, 3, 2, 4, 1, 2]  # a pair is two calls


# -- what is told ---------------------------------------------------------------------------


def test_figures_are_sent_every_so_many_calls_and_at_the_end(kept: Any, tmp_path: Path) -> None:
    to = kept()
    with (
        Audit(SPACE, ScriptedModel(), **OPTIONS) as audit,
        tracked(audit, "mlflow", every=10, folder=tmp_path / "mine") as follow,
    ):
        result = audit.run(follow)
        result.save(tmp_path)
        follow.keep(tmp_path)
    assert [calls for calls, _ in to.figures] == [1, 11, 21, 25]
    assert (to.name, to.finished) == ("mine", True)
    assert to.files == ["result.json", "report.html"]
    last = to.figures[-1][1]
    row = result.targets.iloc[1]
    assert last["calls"] == result.calls
    assert last["questions"] == result.questions
    for name in ("estimate", "lower", "upper"):
        assert last[f"{name}/{row['target']}"] == pytest.approx(row[name])
    assert last[f"half-width/{row['target']}"] == pytest.approx(row["half_width"])
    assert to.settings["targets"].startswith("overall error, relation identity: error")
    assert to.settings["model"] == "scripted"
    assert to.settings["seed"] == 1


@pytest.mark.slow
def test_of_a_comparison_differences_are_sent(kept: Any) -> None:
    to = kept()
    with (
        Versus(SPACE, ScriptedModel(), ScriptedModel(seed=1), budget=20, seed=1) as versus,
        tracked(versus.audit, "wandb") as follow,
    ):
        verdict = versus.run(follow)
    row, last = verdict.targets.iloc[0], to.figures[-1][1]
    assert last["difference/overall error"] == pytest.approx(row["delta"])
    assert last["lower/overall error"] == pytest.approx(row["lower"])
    assert last["upper/overall error"] == pytest.approx(row["upper"])


def test_an_audit_that_explores_tells_its_uncertainty(kept: Any) -> None:
    to = kept()
    with (
        Audit(SPACE, ScriptedModel(), budget=3, seed=1) as audit,
        tracked(audit, "wandb") as follow,
    ):
        audit.run(follow)
    assert set(to.figures[-1][1]) == {"calls", "questions", "cost", "uncertainty"}


def test_the_same_audit_is_the_same_run_in_its_folder_and_no_other(kept: Any) -> None:
    def identity(folder: str, seed: int = 1) -> str:
        to = kept()
        options = {**OPTIONS, "seed": seed}
        with (
            Audit(SPACE, ScriptedModel(), **options) as audit,
            tracked(audit, "wandb", folder=folder),
        ):
            pass
        assert to.audit.isalnum()
        assert to.finished is False  # as nothing was asked
        return str(to.audit)

    assert identity("a") == identity("a")
    assert len({identity("a"), identity("b"), identity("a", 2)}) == 3


def test_no_address_and_no_option_of_anybodys_own_is_told() -> None:
    """Of [model] its name and version; the list says what is told, not what is left out."""
    journal = MemoryJournal()
    Audit(SPACE, ScriptedModel(), **OPTIONS, journal=journal)
    spec = {
        "dataset": {"kind": "table", "path": "hush.csv"},
        "model": {
            "kind": "http",
            "url": "https://hush.example/${TOKEN}",
            "headers": {"X-Key": "${HUSH}"},
            "request": {"hush": 1},
        },
        "space": {"relations": ["identity"], "options": {"a.py:A": {"k": "hush"}}},
        "audit": {"strategy": "certify", "strategy_options": {"k": "hush"}, "seed": 1},
        "certify": {"proxies": {"p": "hush.csv"}, "prior_journal": "hush/journal.db"},
        "track": {"to": "wandb", "project": "p"},
    }
    journal.set_facts(spec=spec)
    told = settings(read_facts(journal.facts()))
    assert "hush" not in json.dumps(told).lower()
    assert "example" not in json.dumps(told)
    assert told["space.relations"] == "identity"
    assert told["audit.strategy"] == "certify"
    assert all(len(str(value)) <= LONGEST for value in told.values())


# -- nothing of it stops an audit -----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("method", ["begin", "log", "keep", "end"])
def test_a_tracker_that_fails_is_one_warning_and_changes_nothing(
    kept: Any, method: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept(fails=method)
    monkeypatch.setenv("WANDB_API_KEY", f"hush-{method}")
    warned: list[str] = []
    with (
        Audit(SPACE, ScriptedModel(), **OPTIONS) as audit,
        tracked(audit, "wandb", every=1, warn=warned.append) as follow,
    ):
        result = audit.run(follow)
        follow.keep(tmp_path)
    (said,) = warned
    assert "Kept gets no more figures, and the audit goes on without: ConnectionError: " in said
    assert "hush" not in said
    alone = Audit(SPACE, ScriptedModel(), **OPTIONS).run()
    assert result.targets.equals(alone.targets)


def test_a_tracker_that_hangs_keeps_no_audit_waiting(
    kept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = Event()
    to = kept(hangs=released)
    monkeypatch.setattr(following, "PATIENCE", 0.1)
    warned: list[str] = []
    with (
        Audit(SPACE, ScriptedModel(), **OPTIONS) as audit,
        tracked(audit, "wandb", every=1, warn=warned.append) as follow,
    ):
        audit.run(follow)
    assert audit.stopped
    assert to.name == ""  # it is still in its first step
    released.set()
    assert ["not all was sent within 0.1 seconds" in said for said in warned] == [True]


def test_mistakes_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = Audit(SPACE, ScriptedModel(), **OPTIONS)
    with pytest.raises(InputError, match=r"unknown tracker 'mflow'.*did you mean 'mlflow'"):
        tracked(audit, "mflow").__enter__()
    with pytest.raises(InputError, match="every: expected at least 1 call, got 0"):
        tracked(audit, "mlflow", every=0).__enter__()
    for module, name in (("mlflow", "mlflow"), ("wandb", "wandb"), ("tensorboardX", "tensorboard")):
        monkeypatch.setitem(sys.modules, module, None)
        monkeypatch.setitem(sys.modules, f"{module}.entities", None)
        with pytest.raises(InputError, match=rf"pip install '{module}"):
            backend(name, "p", Path())


# -- on the command line --------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_line_tracks_what_it_runs_and_goes_on_with(
    kept: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    write_start(tmp_path)
    spec, out = str(tmp_path / "SPEC.toml"), str(tmp_path / "run")
    limits = [
        "--half-width",
        "0.3",
        "--budget",
        "4",
        "--set",
        "certify.self_taught=false",
        "--seed",
        "1",
    ]
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    assert run("audit", spec, *limits, "--out", out, "--set", "track.to=tensorboard") == 2
    assert "pip install 'tensorboardX>=" in capsys.readouterr().err
    assert not Path(out).exists()
    assert run("audit", spec, *limits, "--out", out, "--set", "track.to=mflow") == 2
    assert "did you mean 'mlflow'" in capsys.readouterr().err

    monkeypatch.setattr("adaptive_vtt.cli.run_folder.backend", lambda *_: None)
    to = kept()
    assert run("audit", spec, *limits, "--out", out, "--set", "track.to=tensorboard") == 0
    assert (to.name, to.files) == ("run", ["result.json", "report.html"])
    assert to.figures[-1][0] == 4
    assert to.settings["certify.half_width"] == 0.3
    again = kept()
    assert run("resume", out, "--budget", "6") == 0
    assert (again.audit, again.figures[-1][0]) == (to.audit, 6)

    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    assert run("resume", out, "--budget", "8") == 0
    assert "the audit goes on without" in capsys.readouterr().err


def test_the_spec_has_a_section_for_it(tmp_path: Path) -> None:
    write_start(tmp_path)
    table = read_spec(tmp_path / "SPEC.toml").model_dump()
    section = parse_spec({**table, "track": {"to": "wandb", "every": 5}}, "SPEC.toml").track
    assert section is not None
    assert (section.to, section.every, section.project) == ("wandb", 5, "adaptive-vtt")
    with pytest.raises(InputError, match=r"SPEC.toml: track\.every"):
        parse_spec({**table, "track": {"to": "wandb", "every": 0}}, "SPEC.toml")


# -- the trackers themselves, into files of this machine --------------------------------------


PROJECT = "polyps-of-this-test"


def really(name: str, package: str) -> None:
    reason = f"needs pip install 'adaptive-vtt[{name}]'"
    pytest.importorskip(package, reason=reason)


def followed(name: str, folder: Path) -> Any:
    """The result of an audit that was tracked, and gone on with, into ``folder``."""
    for budget in (15, 25):
        options = {**OPTIONS, "budget": budget, "journal": folder / "journal.db"}
        warned: list[str] = []
        with Audit(SPACE, ScriptedModel(), **options) as audit:
            hook = tracked(
                audit, name, every=10, folder=folder, project=PROJECT, warn=warned.append
            )
            with hook as follow:
                result = audit.run(follow)
                result.save(folder)
                follow.keep(folder)
        assert warned == []
    return result


@pytest.mark.slow
def test_mlflow_keeps_it_in_its_local_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really("mlflow", "mlflow")
    really("mlflow", "sqlalchemy")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    result = followed("mlflow", tmp_path)
    from mlflow.tracking import MlflowClient

    client = MlflowClient()
    experiment = client.get_experiment_by_name(PROJECT)
    assert experiment is not None
    (found,) = client.search_runs([experiment.experiment_id])
    number = found.info.run_id
    assert found.info.status == "FINISHED"
    assert found.data.params["model"] == "scripted"
    history = client.get_metric_history(number, "half-width/overall error")
    assert sorted({metric.step for metric in history}) == [1, 11, 15, 16, 25]
    last = max(history, key=lambda metric: metric.step)
    assert last.value == pytest.approx(result.targets.iloc[0]["half_width"])
    paths = {file.path for file in client.list_artifacts(number)}
    assert paths == {"result.json", "report.html"}


def test_tensorboard_reads_its_event_files(tmp_path: Path) -> None:
    really("tensorboard", "tensorboardX")
    result = followed("tensorboard", tmp_path)
    from tensorboardX.proto.event_pb2 import Event

    steps: dict[str, dict[int, float]] = {}
    texts: dict[str, str] = {}
    for path in sorted((tmp_path / "tensorboard").glob("events*")):
        for record in records(path.read_bytes()):
            event = Event.FromString(record)
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    steps.setdefault(value.tag, {})[event.step] = value.simple_value
                else:
                    texts[value.tag] = value.tensor.string_val[0].decode()
    curve = steps["half-width/overall_error"]  # TensorBoard takes no spaces
    assert sorted(curve) == [1, 11, 15, 16, 25]
    assert curve[25] == pytest.approx(result.targets.iloc[0]["half_width"])
    assert "| model | scripted |" in texts["settings/text_summary"]
    stated = texts["result.json/text_summary"].removeprefix("```json\n").removesuffix("\n```")
    assert json.loads(stated)["calls"] == result.calls


def records(data: bytes) -> list[bytes]:
    """What a file of records holds: each between its length and its checksum."""
    found = []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        found.append(data[12 : 12 + length])
        data = data[16 + length :]
    return found


def test_wandb_keeps_it_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really("wandb", "wandb")
    for name in ("WANDB_API_KEY", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "WANDB_DATA_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    followed("wandb", tmp_path)
    data = b"".join(path.read_bytes() for path in tmp_path.rglob("*.wandb"))
    for text in ("half-width/overall error", "stops at", "scripted", PROJECT):
        assert text.encode() in data
