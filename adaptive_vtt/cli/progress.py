"""What a running audit shows on a terminal, and the table it ends with."""

import time
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn
from rich.table import Table

from ..audit import Audit
from ..audit import Progress as Step
from ..results import Result

REFRESH = 0.1
"""Seconds between redraws; the audit itself may be far quicker."""
SHOWN = 12
"""So many of the worst targets are printed at the end; the rest is in the report."""


class Live:
    """A progress bar with calls, questions, cost, elapsed time, and what is still open."""

    def __init__(self, audit: Audit, *, quiet: bool) -> None:
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self._audit = audit
        self._last = 0.0
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[status]}"),
            console=self.console,
            transient=True,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        rules = " or ".join(self._audit.rules) or "every question is asked"
        self.console.print(repr(self._audit.space), markup=False)
        self.console.print(f"stops at: {rules}", markup=False)
        self._bar.start()
        self._task = self._bar.add_task("asking", total=self._audit.budget, status="")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def update(self, step: Step) -> None:
        """Redraws, at most every REFRESH seconds."""
        now = time.monotonic()
        if self._task is None or now - self._last < REFRESH:
            return
        self._last = now
        side = "present" if step.side else "absent"
        status = (
            f"{step.state.calls} calls, {step.state.questions} questions, cost {step.cost:g}, "
            f"{step.state.elapsed:.0f} s, uncertainty {step.state.mean:.2f} of prior, "
            f"most at {step.concept} ({side}) {step.state.widest:.2f}"
        )
        self._bar.update(self._task, completed=step.state.calls, status=status)

    def finish(self, result: Result, out: Path) -> None:
        """Why it stopped, the worst targets, and where the report is."""
        console = Console(highlight=False)
        console.print(
            f"stopped: {result.reason} - {result.calls} calls, {result.questions} questions, "
            f"cost {result.cost:g}",
            markup=False,
        )
        table = Table(title="highest error rates (raw sample figures, no guarantee)")
        for column in ("target", "error", "questions"):
            table.add_column(column, justify="left" if column == "target" else "right")
        worst = result.targets.sort_values("estimate", ascending=False).head(SHOWN)
        for _, row in worst.iterrows():
            table.add_row(str(row["target"]), f"{row['estimate']:.3f}", str(row["questions"]))
        console.print(table)
        console.print(f"report: {out / 'report.html'}", markup=False)
