"""Progress of a running audit in one line, on a terminal and in notebooks.

In notebooks IPython shows HTML, as rich would need ipywidgets there. Nothing is shown if the output
is no terminal.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from html import escape
from typing import Any, Protocol

import numpy as np

from ..engine.calling import OnProgress, Progress
from ..engine.options import Certify, Limits
from ..errors import one_line
from ..families import TargetId, distinct_name
from ..results.difference import point_span
from ..space import QuestionSpace
from ..stopping import State
from ..utils.figures import money, on_page
from ..utils.other_code import place_of

Hooks = OnProgress | bool | Sequence[OnProgress | bool] | None
"""Hooks of a run: a function, True for a progress bar, or several of both; None or False: none."""
REFRESH = 0.2
"""Minimum number of seconds between redraws."""
VACUOUS = 0.5
"""Half-width of an interval before the first answer."""
TINY = 1e-9


class Running(Protocol):
    """The members of an audit that the display of progress reads."""

    space: QuestionSpace
    certify: Certify
    limits: Limits

    @property
    def target_ids(self) -> list[TargetId]:
        """The certified targets."""

    @property
    def exact(self) -> bool:
        """True if every question is asked."""


# -- share done, targets done ------------------------------------------------------------------


def share_done(
    state: State, cost: float, certify: Certify, limits: Limits, *, exact: bool = False
) -> float | None:
    """Return the share of an audit that is done, in [0, 1]; None if no end is known.

    Args:
        state: The present state.
        cost: Cost so far.
        certify: The goals; the audit ends once all are reached.
        limits: The limits; the audit ends at the first one.
        exact: Whether the audit ends once everything is asked.
    """
    goals: list[float] = []
    if state.targets and certify.half_width is not None:
        # Precision, 1 / half-width^2, is proportional to the calls of a target. The share is the
        # mean of two: that of the slowest target, which may not move while others advance, and the
        # mean of all targets, which does not show a slow one.
        widths = np.maximum([target.half_width for target in state.targets], TINY)
        start, goal = VACUOUS**-2, certify.half_width**-2
        shares = np.clip((widths**-2.0 - start) / max(goal - start, TINY), 0, 1)
        goals.append(float(shares.min() + shares.mean()) / 2)
    if sides := _sides(state):
        goals.append(1 - sides.count("open") / len(sides))
    ends = [min(goals)] if goals else []
    ends += [1 - state.mean] if exact else []
    ends += [state.calls / limits.budget] if limits.budget else []
    ends += [cost / limits.max_cost] if limits.max_cost else []
    return min(max(ends), 1.0) if ends else None


def _sides(state: State) -> list[str]:
    """Return, for each target to be decided, its side or better model, or "open"."""
    return [side for target in state.targets if (side := target.decided or target.decision)]


def done(state: State, certify: Certify) -> str:
    """Return a text with the number of targets that are done; "" if nothing is certified."""
    count = len(state.targets)
    if sides := _sides(state):
        return f"{count - sides.count('open')}/{count} decided"
    if certify.half_width is None or not count:
        return ""
    precise = sum(target.half_width <= certify.half_width for target in state.targets)
    return f"{precise}/{count} certified"


def widest(audit: Running, step: Progress) -> tuple[str, str]:
    """Return texts of the widest interval, or the largest uncertainty, and of its target."""
    state = step.state
    if audit.exact:
        return "", ""
    if not state.targets:
        side = "present" if step.side else "absent"
        return f"uncertainty {state.mean:.2f}, most at ", f"{step.concept} ({side})"
    target = max(state.targets, key=lambda target: target.half_width)
    name = distinct_name(target.id, [(v.relation.name, v.severity) for v in audit.space.variants])
    if delta := target.difference:
        return f"{point_span(-delta.upper, -delta.lower)} points ", name
    return f"+-{100 * target.half_width:.1f} points ", name


# -- hooks -------------------------------------------------------------------------------------


def guarded(hook: OnProgress, warn: Callable[[str], object]) -> OnProgress:
    """Return a hook that passes its first exception to ``warn``, and is not called any more.

    A paid audit must not end because a user's dashboard is down.
    """
    failed = False

    def call(step: Progress) -> None:
        nonlocal failed
        if failed:
            return
        try:
            hook(step)
        except Exception as error:  # user code, which may fail in any way
            failed = True
            name = getattr(hook, "__name__", type(hook).__name__)
            warn(
                f"on_progress: {name} raised {type(error).__name__}: {one_line(error)}"
                f"{place_of(error)}; it is not called again, and the audit continues without it"
            )

    return call


@contextmanager
def followed(audit: Running, hooks: Hooks) -> Iterator[list[OnProgress]]:
    """Yield the hooks as functions; True becomes one that shows a bar."""
    with ExitStack() as until:
        functions: list[OnProgress] = []
        for hook in hooks if isinstance(hooks, Sequence) else [hooks]:
            if callable(hook):
                functions.append(guarded(hook, warnings.warn))
            elif hook:
                functions.append(until.enter_context(shown(audit)))
        yield functions


@contextmanager
def shown(audit: Running) -> Iterator[OnProgress]:
    """Yield a function that shows the ``Progress`` it is called with."""
    last = 0.0
    with _notebook() if in_notebook() else _terminal() as draw:

        def update(step: Progress) -> None:
            nonlocal last
            state, limits = step.state, audit.limits
            if time.monotonic() - last >= REFRESH:
                last = time.monotonic()
                share = share_done(state, step.cost, audit.certify, limits, exact=audit.exact)
                cost = f"cost {money(step.cost, step.currency)}" if step.cost else ""
                parts = [f"{state.calls:,} calls", f"{state.elapsed:.0f} s", cost]
                parts += [done(state, audit.certify), "".join(widest(audit, step))]
                draw(share or 0.0, ", ".join(filter(None, parts)))

        yield update


def in_notebook() -> bool:
    """Return whether IPython runs in a notebook, where it can show HTML."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ not in ("NoneType", "TerminalInteractiveShell")


@contextmanager
def _notebook() -> Iterator[Any]:
    from IPython.display import HTML, display

    handle = display(HTML(""), display_id=True)
    try:
        yield lambda share, words: handle.update(HTML(bar(share, on_page(words))))
    finally:
        handle.update(HTML(""))


@contextmanager
def _terminal() -> Iterator[Any]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    console = Console(stderr=True, highlight=False)
    text = Column(ratio=1, no_wrap=True, overflow="ellipsis")  # cut on a narrow terminal
    columns = (
        BarColumn(bar_width=14, table_column=Column(min_width=14)),
        TaskProgressColumn(table_column=Column(min_width=4)),
        TextColumn("{task.fields[words]}", table_column=text, markup=False),
    )
    off = not console.is_terminal
    with Bar(*columns, console=console, transient=True, disable=off, expand=True) as drawn:
        task = drawn.add_task("asking", total=1.0, words="")
        yield lambda share, words: drawn.update(task, completed=share, words=words)


def bar(share: float, words: str) -> str:
    """Return HTML of a bar filled to ``share``, in [0, 1], with words next to it."""
    return (
        '<div style="font:13px/1.5 system-ui,sans-serif">'
        f'<progress value="{share:.3f}" max="1" style="width:160px;vertical-align:middle">'
        f"</progress> {100 * share:.0f} %, {escape(words)}</div>"
    )
