"""Progress of an audit on a terminal, and the table it ends with."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pandas as pd
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from ..audit import Audit
from ..audit import Progress as Step
from ..audit.overview import show
from ..audit.progress import done, share_done, widest
from ..certify.further import longest
from ..families import OfDrop
from ..journal.facts import CertificateFacts, goal_reached
from ..results import census
from ..results.advice import in_money
from ..results.cautions import fallen_back
from ..results.difference import point_span, points
from ..results.replies import readings
from ..results.result import Result
from ..results.run import Run
from ..utils.figures import (
    estimate_percent,
    in_points,
    money,
    outward,
    percent,
    shorten,
    span,
    tenths,
)
from .printing import filled, plain_console, print_filled, table_of
from .signals import raise_missed

BAR = 10
"""Columns of the bar, in a terminal of at least ``WIDE`` columns."""
WIDE = 60
FIRST, LONGEST = 10.0, 300.0
"""Seconds until the first plain line where there is no terminal, and the longest pause between two;
each pause is twice the one before."""
REPLIES, FIRST_CALLS = 3, 50
"""Number of replies that are shown, among so many first calls."""
SHOWN = 12
"""Most targets that are printed at the end; all are in the report."""
SOON = 0.05
"""Share of the work, below which no time left is estimated."""
MIN = 16
"""Fewest columns of the last part, which may be cut."""
LAST = 28
"""Columns that are left for the last part, the widest target and its name."""


@contextmanager
def counting(what: str, total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show a bar of ``total`` steps and the time left on stderr.

    If that is no terminal, a line is written now and then.

    Yields:
        A function that takes the number of steps made.
    """
    console, since = plain_console(stderr=True, quiet=quiet), time.monotonic()
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    hidden = not console.is_terminal
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=hidden)
    task, due = bar.add_task(what, total=total), since + FIRST

    def advance(steps: int) -> None:
        nonlocal due
        bar.advance(task, steps)
        if hidden and (now := time.monotonic()) >= due:
            done = bar.tasks[0].completed
            left = time_left(done / total, 0.0, now - since)
            console.print(", ".join(filter(None, [f"{what}: {done:,.0f} of {total:,}", left])))
            due = now + FIRST

    with bar:
        yield advance


class Live:
    """A line with an audit's progress: activity, calls, cost, time left, and the widest interval.

    In a terminal it is redrawn, else a new line is written now and then.

    Args:
        audit: The audit.
        quiet: Whether nothing is printed.
        what: Name of the activity. Default: the model's.
    """

    def __init__(self, audit: Audit, *, quiet: bool = False, what: str = "") -> None:
        self.console = plain_console(stderr=True, quiet=quiet)
        self._audit, self._what = audit, what
        self._step: Step | None = None
        self._share: float | None = None
        self._since, self._next = time.monotonic(), FIRST
        # (seconds, share done) at two moments, each twice as late as the one before; the pace since
        # the first is that of the last calls, without what was prepared before the first answer
        self._marks: list[tuple[float, float]] = []
        self._replies = 0  # how many were shown
        self._printed: list[str] = []  # troubles and warnings, while it ran
        self._redrawn = self.console.is_terminal and not self.console.is_dumb_terminal
        columns = [BarColumn(bar_width=BAR)] if self.console.width >= WIDE else []
        self._bar = Progress(
            *columns, _Line(self), console=self.console, transient=True, disable=not self._redrawn
        )
        self._task = self._bar.add_task("asking", total=None)

    def __enter__(self) -> Self:
        if not self._what:
            space, audit = self._audit.space, self._audit
            if audit.state().calls == 0 and audit.certify.compare is None:
                show(space, audit.targets, audit.model.answers, self.console)
            samples = "images" if space.dataset.has_images else "items"
            asked = f"{space.size:,} questions about {len(space.dataset):,} {samples}"
            ends = in_points(" or ".join(audit.rules)) or "every question is asked"
            lines = f"{asked} of {space.dataset.name}", audit.prepared, f"stops at: {ends}"
            self.console.print("\n".join(filter(None, lines)))
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def update(self, step: Step) -> None:
        """Note the audit's state, and write a line if one is due."""
        raise_missed()
        self._print_trouble()
        self._print_replies(step)
        self._step, audit = step, self._audit
        goals = audit.certify, audit.limits
        self._share = share = share_done(step.state, step.cost, *goals, exact=audit.exact)
        passed = time.monotonic() - self._since
        if not self._marks or passed >= 2 * self._marks[-1][0]:
            self._marks = [*self._marks[-1:], (passed, share or 0.0)]
        if self._redrawn:
            self._bar.update(self._task, completed=share or 0, total=None if share is None else 1)
        elif passed >= self._next:
            self._next += min(self._next, LONGEST)
            self.console.print(self.line(10**6, passed), soft_wrap=True)

    def line(self, width: int, passed: float | None = None) -> str:
        """Return the line in at most ``width`` columns, ``passed`` seconds after the start."""
        passed = time.monotonic() - self._since if passed is None else passed
        doing, step = self._what or self._audit.model.doing or "asking", self._step
        if step is None:
            return fitted([doing], "", "", width)
        parts = [
            doing if self._share is None else f"{doing} {self._share:.0%}",
            f"{step.state.calls:,} calls",
            money(step.cost, step.currency) if step.cost else "",
            time_left(self._share, self._marks[0][1], passed - self._marks[0][0]),
            done(step.state, self._audit.certify),
        ]
        return fitted(parts, *widest(self._audit, step), width)

    def _print_replies(self, step: Step) -> None:
        """Print the first replies of a chat model, and how they were read."""
        if self._replies < REPLIES and step.state.calls <= FIRST_CALLS:
            for reply, reading in readings(step.answered, REPLIES - self._replies):
                self._replies += 1
                self.console.print(f"reply: {shorten(reply, 100)!r}, read as {reading}")

    def _print_trouble(self) -> None:
        """Print, once each, the first malformed reply and what the server does not support."""
        statistics: Mapping[str, Any] = self._audit.model.statistics() or {}
        first = statistics.get("first_malformed")
        lines = [f"trouble: the first malformed reply: {first}"] if first else []
        lines += [f"warning: {caution}" for caution in fallen_back(self._audit.model.elicitation())]
        for line in lines:
            if line not in self._printed:
                self._printed.append(line)
                self.console.print(line)

    def finish(self, run: Run, result: Result, out: Path) -> None:
        """Print how the audit ended, without the warnings that were given while it ran."""
        self._print_trouble()
        print_end(run, result, out, self._printed)


class _Line(ProgressColumn):
    """The live line, cut to what the bar leaves of the terminal."""

    def __init__(self, live: Live) -> None:
        super().__init__()
        self._live = live

    def render(self, task: Task) -> Text:
        width = self._live.console.width
        return Text(self._live.line(width - 1 - (BAR + 1 if width >= WIDE else 0)), no_wrap=True)


def print_end(run: Run, result: Result, out: Path, printed: Sequence[str] = ()) -> None:
    """Print the reason for the end of an audit, its main targets, and the path of the report.

    Args:
        run: The audit's records.
        result: Its result.
        out: Folder of the run.
        printed: Warnings that were printed while it ran.
    """
    words: Any = {"result": result, "facts": run.facts, "out": out, "printed": printed}
    words |= {"clock": clock, "in_points": in_points, "still_open": still_open}
    print_filled("end", _table(result), **words)


def _table(result: Result) -> Table:
    """Return the highest rates; of a census that of all questions first."""
    if result.census:
        rates = result.census["rates"]
        others = rates.iloc[1:].sort_values("exact", ascending=False)
        title, shown = "exact rates", pd.concat([rates.head(1), others]).head(SHOWN)
        columns: dict[str, Iterable[object]] = {
            "target": shown["target"],
            "rate": shown["exact"].map(percent),
            "questions": [f"{count:,}" for count in shown["questions"]],
            "for others (95 % each)": map(span, shown["lower elsewhere"], shown["upper elsewhere"]),
        }
        if census.ANY_WRONG in shown:
            # of the labels of an image; short, next to long names
            columns["any wrong"] = shown[census.ANY_WRONG].map(percent)
    else:
        rates = result.targets
        shown = rates.sort_values("estimate", ascending=False).head(SHOWN)
        title = "highest raw rates, no guarantee"
        columns = {"target": shown["target"], "estimate": shown["estimate"].map(percent)}
        if (rates["kind"] == OfDrop.kind).all():
            title, columns["estimate"] = "largest drops, in points", map(points, shown["estimate"])
            columns["interval"] = map(point_span, shown["lower"], shown["upper"])
        elif "more_calls" in rates:
            title, ends = "highest error rates", (shown["lower"], shown["upper"])
            columns["estimate"] = map(estimate_percent, shown["estimate"], *ends)
            columns["interval"] = map(span, *ends)
        if "constant" in shown and shown["constant"].notna().any():
            columns["constant answer"] = shown["constant"].map(percent)
        columns |= {"decided": shown["decided"]} if "decided" in shown else {}
        columns["questions"] = map("{:,}".format, shown["questions"])
    if len(rates) > SHOWN:
        title += f", {SHOWN} of {len(rates)}" + " targets" * (not result.census)
    return table_of([*columns], zip(*columns.values(), strict=True), title)


def still_open(result: Result, certify: CertificateFacts, *, whole: bool = True) -> str:
    """Return how many targets are not known as precisely as asked.

    If ``whole``, also how many calls they would take.
    """
    left = [status for status in result.unreached if not status.emptied]
    further = longest(status.more_calls for status in left)
    # without a forecast of one of them, the widest
    worst = max(
        left, key=lambda s: ((further and s.more_calls) or (0,), s.half_width), default=None
    )
    place = ""
    if worst is not None:
        place = f"+-{tenths(outward(0, worst.half_width)[1])} points"
        place = span(worst.lower, worst.upper) if certify.half_width is None else place
    words: Any = {"result": result, "goal": goal_reached(certify.half_width, certify.at_most)}
    words |= {"worst": worst, "place": place, "further": further, "open_count": len(left)}
    if further is not None:
        words["cost"] = in_money(further, result.cost, result.calls, result.currency)
    count, rest = filled("still_open", **words).split("\n")
    return count + rest if whole else count


# -- texts that fit the width ------------------------------------------------------------------


def clock(seconds: float) -> str:
    """Return minutes and seconds, or hours: 1:05, 2:03:04."""
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def time_left(share: float | None, began: float, seconds: float) -> str:
    """Return about how long it takes to the end, by the pace from the share where it ``began``."""
    if share is None or share - began < SOON or share >= 1:
        return ""
    return f"~{clock(seconds * (1 - share) / (share - began))} left"


def fitted(parts: Sequence[str], figure: str, name: str, width: int, joint: str = "  ") -> str:
    """Return a line that fits a width.

    It has as many parts as fit, in order, then the figure and as much of its name as fits. Empty
    parts are left out. From ``WIDE`` columns on, the parts leave ``LAST`` columns to figure and
    name.
    """
    last = figure + name
    line, kept = "", min(len(last), LAST) + len(joint) if last and width >= WIDE else 0
    for part in filter(None, parts):
        longer = f"{line}{joint}{part}" if line else part
        if len(longer) > width - kept:
            break
        line = longer
    room = width - len(line) - len(joint)
    if not last or room < min(MIN, len(last)):
        return line
    return f"{line}{joint}{figure}{shorten(name, room - len(figure))}"[:width]
