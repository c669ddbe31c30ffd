"""The hook that sends an audit's figures on, and what is told of it.

Settings are a list of what is shared, not of what is left out: of the model its name and version
alone, so neither its address nor headers, keys, commands or options of anybody's own.

What an audit does waits for no server: the hook works out the figures and leaves them to a thread
of its own, which ends at the first thing that goes wrong. Nothing is sent after that, one warning
says so, and the audit goes on. At the end what is left is waited for, no longer than ``PATIENCE``.
"""

import hashlib
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Annotated, Any, Protocol

from ...certify.decisions import Comparison
from ...engine.calling import Progress
from ...engine.options import Certify
from ...errors import InputError, one_line
from ...journal import Journal
from ...journal.facts import Facts, read_facts
from ...models.network.keys import Key, scrubbed
from ...stopping import State
from ...types import JsonObject
from ...utils.figures import shorten
from ...utils.options import Option
from .backends import Backend, Value, backend

# -- what is told ----------------------------------------------------------------------------------


SHARED = ("space", "audit", "stop", "certify")
"""Sections of a SPEC.toml whose fields are told ..."""
APART = ("options", "proxies", "prior_journal", "cohort", "where")
"""... but for those that end so, which hold paths, and texts of anybody's own."""
LONGEST = 500
"""Characters of a setting: the least that a back end cuts at."""


def identity(facts: Facts, folder: Path) -> str:
    """Letters and digits that name the audit in that folder: the same when it is gone on with.

    Nothing follows from them of the audit's key, nor of where the folder is.
    """
    return hashlib.sha256(f"tracked {facts.key} {folder}".encode()).hexdigest()[:16]


def settings(facts: Facts) -> dict[str, Value]:
    """What the audit was begun with, by name; the spec's own fields begin with their section."""
    chosen, space, certificate = facts.settings, facts.space, facts.certificate
    found: JsonObject = {
        "model": chosen.model,
        "model version": facts.model_version,
        "dataset": space.dataset,
        "samples": space.samples,
        "questions": space.size,
        "oracle": chosen.oracle.name,
        "strategy": chosen.strategy,
        "seed": chosen.seed,
        "exploration": chosen.exploration,
        "stops at": "; ".join(facts.stop),
    }
    if certificate is not None:
        found |= {
            "targets": ", ".join(certificate.targets),
            "confidence": certificate.confidence,
            "guarantee": certificate.guarantee,
        }
    spec = facts.spec or {}
    for section in SHARED:
        for name, value in (spec.get(section) or {}).items():
            if not name.endswith(APART):
                found[f"{section}.{name}"] = value
    return {name: _short(value) for name, value in found.items() if value is not None}


def _short(value: Any) -> Value:
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        return shorten(text, LONGEST)
    return value


def figures(
    state: State,
    cost: float,
    rows: list[JsonObject] | None,
    compare: Comparison | None,
) -> dict[str, float]:
    """Where the audit stands. ``rows``: of every target, None where nothing is certified.
    ``compare``: where two models are compared; then estimate and ends are of their difference,
    R_A - R_B."""
    found = {"calls": float(state.calls), "questions": float(state.questions), "cost": cost}
    if rows is None:
        return {**found, "uncertainty": state.mean}
    for k, row in enumerate(rows):
        found.update(_of_target(k, row, compare))
    return found


def _of_target(
    k: int, row: Mapping[str, Any], compare: Comparison | None
) -> Iterator[tuple[str, float]]:
    ends = (row["estimate"], row["lower"], row["upper"])
    if compare is not None:
        ends = compare.ends(k, *ends)
    named = ("estimate" if compare is None else "difference", "lower", "upper")
    for name, value in zip(named, ends, strict=True):
        yield f"{name}/{row['target']}", float(value)
    yield f"half-width/{row['target']}", float(ends[2] - ends[1]) / 2


# -- the hook --------------------------------------------------------------------------------------


PATIENCE = 30.0
"""Seconds that the end of a run waits for a back end."""
KEPT = ("result.json", "report.html")
SECRETS = ("WANDB_API_KEY", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")
"""Variables whose values stand in no warning."""
_USER = re.compile(r"//[^/@\s]+@")
"""User and password in an address."""


class Followed(Protocol):
    """What is followed: an audit, as far as figures are read off it."""

    journal: Journal
    certify: Certify

    @property
    def cost(self) -> float:
        """What all answers cost so far."""

    def state(self) -> State:
        """Where the audit stands."""

    @property
    def stopped(self) -> str | None:
        """Why it ended, or None."""

    def interval_rows(self) -> list[JsonObject] | None:
        """Every target's interval so far, or None where nothing is certified."""


class Follower:
    """What ``run`` calls with its progress, to be sent to ``to`` after every so many calls.

    ``every``: at least 1, calls. ``folder``: the audit's. ``name``: of the run there. ``warn`` is
    called, at most once and from the audit's own thread, with what went wrong.
    """

    def __init__(
        self,
        audit: Followed,
        to: Backend,
        every: int,
        folder: Path,
        name: str,
        warn: Callable[[str], object],
    ) -> None:
        self._audit, self._to, self._every, self._warn = audit, to, every, warn
        self._next = 0
        self._trouble: str | None = None
        self._warned = False
        self._steps: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name="avtt tracking", daemon=True)
        self._thread.start()
        facts = read_facts(audit.journal.facts())
        self._steps.put(partial(to.begin, identity(facts, folder), name, settings(facts)))

    def __call__(self, step: Progress) -> None:
        """Sends where the audit stands, if that is due."""
        if step.state.calls >= self._next:
            self._next = step.state.calls + self._every
            self._log(step.state, step.cost)
        self._tell()

    def keep(self, folder: Path | str) -> None:
        """Sends result.json and report.html of a run folder, those that are there."""
        found = [Path(folder) / name for name in KEPT if (Path(folder) / name).is_file()]
        self._steps.put(partial(self._to.keep, found))

    def close(self) -> None:
        """Sends where the audit stands in the end, and waits until everything is sent."""
        self._log(self._audit.state(), self._audit.cost)
        self._steps.put(partial(self._to.end, self._audit.stopped is not None))
        self._steps.put(None)
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            self._trouble = f"not all was sent within {PATIENCE:g} seconds"
        self._tell()

    def _log(self, state: State, cost: float) -> None:
        if self._trouble is None:
            audit = self._audit
            told = figures(state, cost, audit.interval_rows(), audit.certify.compare)
            self._steps.put(partial(self._to.log, state.calls, told))

    def _work(self) -> None:
        while (step := self._steps.get()) is not None:
            try:
                step()
            except Exception as error:  # of whatever kind: it is other people's code
                self._trouble = f"{type(error).__name__}: {_harmless(one_line(error))}"
                return

    def _tell(self) -> None:
        if self._trouble is not None and not self._warned:
            self._warned = True
            self._warn(
                f"tracking: {type(self._to).__name__} gets no more figures, and the audit goes on "
                f"without: {self._trouble}"
            )


@contextmanager
def tracked(
    audit: Followed,
    to: Annotated[str, Option("the tracker; each is an extra of its name")],
    *,
    every: Annotated[int, Option("calls between two sendings", ge=1)] = 20,
    project: Annotated[str, Option("experiment or project that runs go under")] = "adaptive-vtt",
    folder: Path | str = ".",
    name: str | None = None,
    warn: Callable[[str], object] = warnings.warn,
) -> Iterator[Follower]:
    """A hook for ``Audit.run`` that sends the audit's figures to a tracker, until the end.

    - ``to``: "mlflow", "wandb" or "tensorboard". Addresses and keys are taken from the environment,
      as each of them does by itself.
    - ``folder``: where TensorBoard's events and W&B's files are written. Default: here.
    - ``name``: of the run. Default: the folder's.
    - ``warn``: is called with the one sentence that says what went wrong with it, if anything does.
      Default ``warnings.warn``.

    Raises InputError for an unknown tracker, and for a package that is missing.
    """
    if every < 1:
        raise InputError(f"every: expected at least 1 call, got {every}")
    place = Path(folder).resolve()
    found = Follower(audit, backend(to, project, place), every, place, name or place.name, warn)
    try:
        yield found
    finally:
        found.close()


def _harmless(text: str) -> str:
    """A message without what must not be seen of a tracker's own access."""
    keys = [Key(os.environ[name]) for name in SECRETS if os.environ.get(name)]
    return _USER.sub("//", scrubbed(text, keys))[:200]
