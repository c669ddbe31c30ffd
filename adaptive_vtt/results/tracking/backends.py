"""The trackers by name, each in a file of its own and imported where it is chosen."""

from pathlib import Path
from typing import get_args

from ...errors import unknown
from .protocol import Backend, Name


def backend(name: str, project: str, folder: Path) -> Backend:
    """The back end of that name. ``project``: what runs are grouped by there; ``folder``: where it
    may write, if it writes files.

    Raises InputError for an unknown name, and for a package that is missing.
    """
    if name == "mlflow":
        from .to_mlflow import MLflow

        return MLflow(project)
    if name == "wandb":
        from .to_wandb import Wandb

        return Wandb(project, folder)
    if name == "tensorboard":
        from .to_tensorboard import TensorBoard

        return TensorBoard(folder)
    raise unknown("tracker", name, get_args(Name))
