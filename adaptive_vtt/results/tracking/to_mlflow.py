"""MLflow: a run of an experiment, at ``MLFLOW_TRACKING_URI``, or in ./mlflow.db without it.

The client is used, and nothing of MLflow's current run: an audit may be one step of a program that
has a run of its own, and the client tells nothing of user, machine and program by itself.
"""

import logging
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...utils.extras import pip_install
from .protocol import Value

AUDIT = "avtt.audit"
"""The tag by which an audit that is gone on with finds its run."""
NOT_PLAIN = re.compile(r"[^\w\-. :/]")
"""What MLflow takes in no name of a metric."""
MAX_SETTINGS, MAX_FIGURES = 100, 1000
"""At a time, by MLflow's own limits."""


class MLflow:
    """Parameters, metrics by calls, artefacts."""

    def __init__(self, project: str) -> None:
        try:
            from mlflow.entities import Metric, Param
            from mlflow.tracking import MlflowClient
        except ImportError:
            raise InputError(
                f"tracking: MLflow needs mlflow-skinny: {pip_install('mlflow')}"
            ) from None
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
