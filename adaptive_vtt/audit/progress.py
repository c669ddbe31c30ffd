"""How far a running audit is, in one line: on a terminal and in notebooks.

Notebooks get HTML by IPython alone: rich would need ipywidgets there, and show nothing without.
Where output goes to a file, nothing is shown.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from html import escape
from typing import Any, Protocol

import numpy as np

from ..engine.calling import OnProgress, Progress
from ..engine.options import Certify, Limits
from ..families import TargetId, told_apart
from ..space import QuestionSpace
from ..stopping import State
from ..utils.figures import money

Hooks = OnProgress | bool | Sequence[OnProgress | bool] | None
"""What follows a run: a function, True for a bar, several of these; None or False for nothing."""
REFRESH = 0.2
"""Seconds between redraws."""


class Running(Protocol):
    """What is told of an audit."""

    space: QuestionSpace
    certify: Certify
    limits: Limits

    @property
    def target_ids(self) -> list[TargetId]:
        """What is certified."""


def share(audit: Running, step: Progress) -> float:
    """How much is done, in [0, 1]: of the budget, or of the targets, whichever is more."""
    state, budget = step.state, audit.limits.budget
    spent = state.calls / budget if budget else 0.0
    return min(1.0, max(spent, _certified(audit, state) / max(1, len(audit.target_ids))))


def words(audit: Running, step: Progress) -> str:
    """Calls, time, cost, and the target that is the furthest from what is asked."""
    state, parts = step.state, [f"{step.state.calls} calls", f"{step.state.elapsed:.0f} s"]
    if step.cost:
        parts.append(f"cost {money(step.cost, step.currency)}")
    if state.lower is not None and state.upper is not None:
        targets, widths = audit.target_ids, (state.upper - state.lower) / 2
        widest = int(np.argmax(widths))
        parts.append(f"{_certified(audit, state)} of {len(targets)} certified")
        variants = [(v.relation.name, v.severity) for v in audit.space.variants]
        name = told_apart(targets[widest], variants)
        parts.append(f"widest ±{100 * widths[widest]:.1f} % {name}")
    return ", ".join(parts)


def _certified(audit: Running, state: State) -> int:
    aim = audit.certify.half_width
    if state.above is not None and state.below is not None and aim is None:
        return int((state.above | state.below).sum())
    if state.lower is None or state.upper is None or aim is None:
        return 0
    return int(((state.upper - state.lower) / 2 <= aim).sum())


@contextmanager
def followed(audit: Running, hooks: Hooks) -> Iterator[list[OnProgress]]:
    """The functions among ``hooks``, and one that shows a bar in the place of True."""
    several = hooks if isinstance(hooks, Sequence) else [hooks]
    with ExitStack() as until:
        found: list[Callable[[Progress], object]] = []
        for hook in several:
            if callable(hook):
                found.append(hook)
            elif hook:
                found.append(until.enter_context(shown(audit)))
        yield found


@contextmanager
def shown(audit: Running) -> Iterator[Any]:
    """A function that takes the audit's ``Progress`` and shows it, until the end."""
    last = 0.0
    with _notebook() if in_notebook() else _terminal() as draw:

        def update(step: Progress) -> None:
            nonlocal last
            if time.monotonic() - last >= REFRESH:
                last = time.monotonic()
                draw(share(audit, step), words(audit, step))

        yield update


def in_notebook() -> bool:
    """Whether IPython runs with a page to show HTML on, not in a terminal."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ not in ("NoneType", "TerminalInteractiveShell")


@contextmanager
def _notebook() -> Iterator[Any]:
    from IPython.display import HTML, display

    handle = display(HTML(""), display_id=True)
    try:
        yield lambda share, words: handle.update(HTML(bar(share, words)))
    finally:
        handle.update(HTML(""))


@contextmanager
def _terminal() -> Iterator[Any]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    console = Console(stderr=True, highlight=False)
    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")  # what a narrow terminal cuts
    columns = (
        BarColumn(bar_width=14, table_column=Column(min_width=14)),
        TaskProgressColumn(table_column=Column(min_width=4)),
        TextColumn("{task.fields[words]}", table_column=rest, markup=False),
    )
    off = not console.is_terminal
    with Bar(*columns, console=console, transient=True, disable=off, expand=True) as drawn:
        task = drawn.add_task("asking", total=1.0, words="")
        yield lambda share, words: drawn.update(task, completed=share, words=words)


def bar(share: float, words: str) -> str:
    """A bar filled to ``share``, in [0, 1], and words beside it, as HTML."""
    return (
        '<div style="font:13px/1.5 system-ui,sans-serif">'
        f'<progress value="{share:.3f}" max="1" style="width:160px;vertical-align:middle">'
        f"</progress> {100 * share:.0f} %, {escape(words)}</div>"
    )
