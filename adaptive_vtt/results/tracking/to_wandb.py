"""Weights & Biases: a run of a project, or files to be synchronised later.

Without a key, and where WANDB_MODE says nothing, runs are kept offline: asking for one would stop
the audit. Of machine, program and terminal nothing is told.
"""

import netrc
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...errors import InputError
from ...utils.extras import pip_install
from .protocol import Value

SERVER = "https://api.wandb.ai"


class Wandb:
    """Config, figures by calls, and an artefact of the type "audit"."""

    def __init__(self, project: str, folder: Path) -> None:
        try:
            import wandb
        except ImportError:
            raise InputError(
                f"tracking: Weights & Biases needs wandb: {pip_install('wandb')}"
            ) from None
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
