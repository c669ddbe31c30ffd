"""What figures are sent to: MLflow, Weights & Biases or TensorBoard, imported where chosen."""

import logging
import netrc
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, get_args
from urllib.parse import urlsplit

from ...errors import check_known
from ...utils.importing import needed

# -- what a tracker is -----------------------------------------------------------------------------


Name = Literal["mlflow", "wandb", "tensorboard"]
Value = str | int | float
"""A setting, as it is told."""


class Backend(Protocol):
    """Methods are called in this order, from one thread, and may raise whatever they like."""

    def begin(self, audit: str, name: str, settings: Mapping[str, Value]) -> None:
        """``audit``: letters and digits that are the same whenever this audit is gone on with;
        ``name``: what people call it."""

    def log(self, calls: int, figures: Mapping[str, float]) -> None:
        """Figures after so many calls; their names may have a group before a slash."""

    def keep(self, files: Sequence[Path]) -> None:
        """Files to be kept beside the figures."""

    def end(self, finished: bool) -> None:
        """No more comes; ``finished``: the audit reached its end, and was not interrupted."""


# -- MLflow ----------------------------------------------------------------------------------------


AUDIT = "avtt.audit"
"""The tag by which an audit that is gone on with finds its run."""
NOT_PLAIN = re.compile(r"[^\w\-. :/]")
"""What MLflow takes in no name of a metric."""
MAX_SETTINGS, MAX_FIGURES = 100, 1000
"""At a time, by MLflow's own limits."""


class MLflow:
    """Parameters, metrics by calls, artefacts."""

    def __init__(self, project: str) -> None:
        with needed("mlflow", "tracking: MLflow needs mlflow-skinny"):
            from mlflow.entities import Metric, Param
            from mlflow.tracking import MlflowClient
        logging.getLogger("mlflow").setLevel(logging.WARNING)  # what it says of tables it creates
        self._metric, self._param, self._client = Metric, Param, MlflowClient
        self._project, self._run = project, ""
        self._mlflow: Any = None
        self._names: dict[str, str] = {}

    def begin(self, audit: str, name: str, settings: Mapping[str, Value]) -> None:
        client = self._mlflow = self._client()
        experiment = client.get_experiment_by_name(self._project)
        place = experiment.experiment_id if experiment else client.create_experiment(self._project)
        found = client.search_runs([place], f"tags.`{AUDIT}` = '{audit}'", max_results=1)
        run = found[0] if found else client.create_run(place, tags={AUDIT: audit}, run_name=name)
        client.update_run(run.info.run_id, status="RUNNING")
        self._run = run.info.run_id
        new = [
            self._param(self._name(key), str(value))
            for key, value in settings.items()
            if self._name(key) not in run.data.params  # they may not change, so the first ones stay
        ]
        for first in range(0, len(new), MAX_SETTINGS):
            client.log_batch(self._run, params=new[first : first + MAX_SETTINGS])

    def log(self, calls: int, figures: Mapping[str, float]) -> None:
        now = int(time.time() * 1000)
        metrics = [self._metric(self._name(n), v, now, calls) for n, v in figures.items()]
        for first in range(0, len(metrics), MAX_FIGURES):
            self._mlflow.log_batch(self._run, metrics=metrics[first : first + MAX_FIGURES])

    def keep(self, files: Sequence[Path]) -> None:
        for file in files:
            self._mlflow.log_artifact(self._run, str(file))

    def end(self, finished: bool) -> None:
        self._mlflow.set_terminated(self._run, "FINISHED" if finished else "KILLED")

    def _name(self, name: str) -> str:
        """A name that MLflow takes; two that differ stay different."""
        if name not in self._names:
            plain = NOT_PLAIN.sub("_", name)
            while plain in self._names.values():
                plain += "_"
            self._names[name] = plain
        return self._names[name]


# -- TensorBoard -----------------------------------------------------------------------------------


RESULT = "result.json"


class TensorBoard:
    """Scalars by calls; settings and the result as texts. The report lies beside the folder."""

    def __init__(self, folder: Path) -> None:
        with needed("tensorboard", "tracking: TensorBoard needs tensorboardX"):
            from tensorboardX import SummaryWriter
        self._open, self._folder = SummaryWriter, folder / "tensorboard"
        self._writer: Any = None

    def begin(self, audit: str, name: str, settings: Mapping[str, Value]) -> None:
        self._writer = self._open(str(self._folder))
        rows = [f"| {key} | {_cell(value)} |" for key, value in settings.items()]
        table = "\n".join(["| setting | value |", "|---|---|", *rows])
        self._writer.add_text("settings", table, 0)

    def log(self, calls: int, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self._writer.add_scalar(name, value, calls)
        self._writer.flush()

    def keep(self, files: Sequence[Path]) -> None:
        for file in files:
            if file.name == RESULT:
                text = file.read_text(encoding="utf-8")
                self._writer.add_text(RESULT, f"```json\n{text}\n```", 0)

    def end(self, finished: bool) -> None:
        self._writer.close()


def _cell(value: Value) -> str:
    return str(value).replace("|", "\\|")


# -- Weights & Biases ------------------------------------------------------------------------------


SERVER = "https://api.wandb.ai"


class Wandb:
    """Config, figures by calls, and an artefact of the type "audit"."""

    def __init__(self, project: str, folder: Path) -> None:
        with needed("wandb", "tracking: Weights & Biases needs wandb"):
            import wandb
        self._wandb, self._project, self._folder = wandb, project, folder
        self._run: Any = None

    def begin(self, audit: str, name: str, settings: Mapping[str, Value]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        quiet = self._wandb.Settings(
            silent=True,
            console="off",
            disable_git=True,
            disable_code=True,
            x_disable_meta=True,
            x_disable_stats=True,
            x_disable_machine_info=True,
            x_save_requirements=False,
        )
        self._run = self._wandb.init(
            project=self._project,
            name=name,
            id=audit,
            resume="allow",
            dir=str(self._folder),
            mode=os.environ.get("WANDB_MODE") or ("online" if _has_key() else "offline"),
            settings=quiet,
        )
        self._run.config.update(dict(settings), allow_val_change=True)

    def log(self, calls: int, figures: Mapping[str, float]) -> None:
        self._run.log(dict(figures), step=calls)

    def keep(self, files: Sequence[Path]) -> None:
        artefact = self._wandb.Artifact(f"audit-{self._run.id}", type="audit")
        for file in files:
            artefact.add_file(str(file))
        self._run.log_artifact(artefact)

    def end(self, finished: bool) -> None:
        self._run.finish(exit_code=0 if finished else 1)


def _has_key() -> bool:
    """Whether wandb would find a key without asking for one."""
    if os.environ.get("WANDB_API_KEY"):
        return True
    host = urlsplit(os.environ.get("WANDB_BASE_URL", SERVER)).hostname or ""
    try:
        return netrc.netrc().authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False


# -- by name ---------------------------------------------------------------------------------------


def backend(name: str, project: str, folder: Path) -> Backend:
    """The back end of that name. ``project``: what runs are grouped by there; ``folder``: where it
    may write, if it writes files.

    Raises InputError for an unknown name, and for a package that is missing.
    """
    check_known("tracker", name, get_args(Name))
    if name == "mlflow":
        return MLflow(project)
    return Wandb(project, folder) if name == "wandb" else TensorBoard(folder)
