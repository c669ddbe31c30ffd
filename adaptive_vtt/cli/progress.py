"""What a running audit shows on a terminal, and the table it ends with."""

import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn
from rich.table import Table

from ..audit import Audit
from ..audit import Progress as Step
from ..certify.plan import Certify
from ..journal.facts import goal_reached
from ..results import Result

REFRESH = 0.1
"""Seconds between redraws; the audit itself may be far quicker."""
NOTHING_CHECKED = (
    "so no rule could be broken: objects have to be located, by annotated boxes or a [detector] "
    "section, and by names that are understood"
)
SHOWN = 12
"""Targets that are printed at the end, at most; all are in the report."""


class Live:
    """A progress bar with calls, questions, cost, elapsed time, and what is still open."""

    def __init__(self, audit: Audit, *, quiet: bool) -> None:
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self._audit = audit
        self._last = 0.0
        self._told = False
        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=14),
            TextColumn("{task.fields[status]}"),
            console=self.console,
            transient=True,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        rules = " or ".join(self._audit.rules) or "every question is asked"
        self.console.print(repr(self._audit.space), markup=False)
        if self._audit.prepared is not None:
            self.console.print(self._audit.prepared, markup=False)
        self.console.print(f"stops at: {rules}", markup=False)
        self._bar.start()
        self._task = self._bar.add_task("asking", total=self._audit.limits.budget, status="")
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
        state = step.state
        self._tell_malformed()
        status = f"{state.calls} calls, {state.questions} questions, {state.elapsed:.0f} s"
        if step.cost:
            status += f", cost {step.cost:g}"
        self._bar.update(self._task, completed=state.calls, status=f"{status}; {self._open(step)}")

    def _open(self, step: Step) -> str:
        """What keeps the audit going."""
        state, certify = step.state, self._audit.certify
        if state.lower is None or state.upper is None:
            side = "present" if step.side else "absent"
            return f"uncertainty {state.mean:.2f}, most at {step.concept} ({side})"
        widths = (state.upper - state.lower) / 2
        widest = int(np.argmax(widths))
        names = self._audit.targets
        if state.above is not None and state.below is not None:
            done = int((state.above | state.below).sum())
            return f"{done}/{len(widths)} decided, widest +-{widths[widest]:.3f} {names[widest]}"
        if certify.half_width is None:
            return f"widest +-{widths[widest]:.3f} {names[widest]}"
        done = int((widths <= certify.half_width).sum())
        return f"{done}/{len(widths)} certified, widest +-{widths[widest]:.3f} {names[widest]}"

    def _tell_malformed(self) -> None:
        """What was wrong with the first malformed reply, once: a path may be mistaken."""
        statistics: Mapping[str, Any] = self._audit.model.statistics() or {}
        if not self._told and (first := statistics.get("first_malformed")):
            self._told = True
            self.console.print(f"trouble: the first malformed reply: {first}", markup=False)

    def finish(self, result: Result, out: Path) -> None:
        """Why it stopped, the targets that matter most, and where the report is."""
        console = Console(highlight=False)
        console.print(
            f"stopped: {result.reason} - {result.calls} calls, {result.questions} questions, "
            f"cost {result.cost:g}",
            markup=False,
        )
        console.print(_table(result.targets))
        if result.guarantee is not None:
            console.print(result.guarantee, markup=False)
        if result.captions is not None:
            console.print(str(result.captions), markup=False)
            if not result.captions.comparable:
                console.print(NOTHING_CHECKED, markup=False)
        if "more_calls" in result.targets and not result.reached.all():
            console.print(_still_open(result, self._audit.certify), markup=False)
        if result.canaries is not None:
            again = result.canaries
            console.print(
                f"{again.calls} calls were asked again: {again.differ} of {again.answers} answers "
                "differ",
                markup=False,
            )
        self._tell_malformed()
        for warning in result.warnings:
            console.print(f"warning: {warning}", markup=False)
        console.print(f"report: {out / 'report.html'}", markup=False)


def _table(targets: pd.DataFrame) -> Table:
    certified = "more_calls" in targets
    title = "highest error rates" if certified else "highest raw rates, no guarantee"
    if len(targets) > SHOWN:
        title += f", {SHOWN} of {len(targets)} targets"
    table = Table(title=title)
    decided = ["decided"] if "decided" in targets else []
    intervals = ["interval"] if certified else []
    for column in ("target", "estimate", *intervals, *decided, "questions"):
        table.add_column(column, justify="left" if column == "target" else "right")
    for _, row in targets.sort_values("estimate", ascending=False).head(SHOWN).iterrows():
        interval = [f"{row['lower']:.3f} - {row['upper']:.3f}"] if certified else []
        table.add_row(
            str(row["target"]),
            f"{row['estimate']:.3f}",
            *interval,
            *(str(row[name]) for name in decided),
            str(row["questions"]),
        )
    return table


def unreached(result: Result, certify: Certify) -> str:
    """Of how many targets all that was asked is not known."""
    done = goal_reached(certify.half_width, certify.at_most)
    return f"{int((~result.reached).sum())} of {len(result.targets)} targets are not {done}"


def _still_open(result: Result, certify: Certify) -> str:
    """How many targets are open, and what the furthest would take; contradicted ones apart."""
    open_ = result.targets[~result.reached & ~result.targets["emptied"].astype(bool)]
    told = unreached(result, certify)
    if open_.empty:
        return f"{told}, but contradicted"
    worst = open_.sort_values("more_calls", ascending=False).iloc[0]
    where = f"at +-{worst['half_width']:.3f}"
    if certify.half_width is None:
        where = f"between {worst['lower']:.3f} and {worst['upper']:.3f}"
    return (
        f"{told}; the furthest, {worst['target']!r}, is {where} and would take about "
        f"{worst['more_calls']} more calls"
    )
