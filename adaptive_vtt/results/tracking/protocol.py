"""What figures are sent to: the methods of every tracker."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

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
