"""TensorBoard: event files in a folder, which ``tensorboard --logdir`` shows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...utils.extras import pip_install
from .protocol import Value

RESULT = "result.json"


class TensorBoard:
    """Scalars by calls; settings and the result as texts. The report lies beside the folder."""

    def __init__(self, folder: Path) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise InputError(
                f"tracking: TensorBoard needs tensorboardX: {pip_install('tensorboard')}"
            ) from None
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
