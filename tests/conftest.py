"""What all tests share: one thread, repeatable examples, and small spaces to ask about."""

import gc
import random
import signal
import sqlite3
from collections.abc import Iterator
from functools import cache
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.helpers.left_open import left, opened

if TYPE_CHECKING:  # whoever hands the tests out to workers imports none of it
    import pandas as pd

    from adaptive_vtt import QuestionSpace

pytest_plugins = ["pytester"]  # the fixture avtt_gate is tried by it

# The same examples every time: a failure is a change in the code, never bad luck.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


@cache
def unsynced(kind: type[sqlite3.Connection]) -> type[sqlite3.Connection]:
    """Return connections of a kind that wait for no disk, which takes a millisecond a commit: what
    tests write need not outlive the machine. `test_mutants.py` asks whether a journal does."""

    class Unsynced(kind):  # type: ignore[misc, valid-type]
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            return super().execute(sql.replace("synchronous=FULL", "synchronous=OFF"), *values)

    return Unsynced


def connect(
    *where: Any, factory: type[sqlite3.Connection] = sqlite3.Connection, **options: Any
) -> sqlite3.Connection:
    return sqlite3.dbapi2.connect(*where, factory=unsynced(factory), **options)


sqlite3.connect = connect
# Begun in the background, a process ignores Ctrl-C, and whatever it begins does, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):  # so does whatever nohup began
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


# Imports make many objects that stay: to look through them for circles while tests are collected,
# as Python does at every 700th, takes half as long as to make them.
gc.disable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", type=int, help="run files, and tests in each, in another order")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("--shuffle")
    if seed is None:
        return
    files = sorted({item.path for item in items})
    rank = {path: k for k, path in enumerate(random.Random(seed).sample(files, len(files)))}
    random.Random(seed).shuffle(items)
    items.sort(key=lambda item: rank[item.path])


def pytest_collection_finish() -> None:
    """The tensors are tiny, and a forked child must not inherit a pool of threads. What all tests
    import stays; to look through it at every collection takes a second each."""
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    threadpool_limits(1)
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)  # objects between two looks; a parsed file alone has as many
    gc.enable()


# One process per test run, begun by whoever first spawns another.
resource_tracker.ensure_running()


@pytest.fixture(autouse=True, scope="module")
def nothing_left_open_by_the_file() -> Iterator[None]:
    """As below, after the file's own fixtures ended."""
    before = opened()
    yield
    if more := left(before):
        pytest.fail(f"left open by the file: {', '.join(more)}")


@pytest.fixture(autouse=True)
def nothing_left_open(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test ends what it began: else a later one is blamed for what is collected then."""
    before = opened()
    yield
    shared = request.node.get_closest_marker("shares") is not None
    if not shared and (more := left(before)):
        pytest.fail(f"left open: {', '.join(more)}")


@pytest.fixture(autouse=True, scope="session")
def repeatable() -> Iterator[None]:
    """Audits of tests, and of what files of tests share, repeat where they give no seed; those of
    users do not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adaptive_vtt.engine.audit_key.fresh_seed", lambda: 0)
        yield


@pytest.fixture(scope="module")
def undrawn() -> Iterator[None]:
    """A report is its journal's head alone: to draw one takes half of a short command's time."""

    def head(source: Any, *_: object, **__: object) -> str:
        return getattr(source, "journal", source).head

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adaptive_vtt.results.report.page.render", head)
        yield


@pytest.fixture
def space() -> "QuestionSpace":
    """6 samples x 6 variants x 2 concepts, with images: 72 questions, 36 calls of "all"."""
    from adaptive_vtt import QuestionSpace
    from adaptive_vtt.testing import tiny_dataset

    return QuestionSpace(tiny_dataset(6, 2), ["identity", "brightness_up"])


@pytest.fixture
def labels() -> "pd.DataFrame":
    """Four samples, three concepts, one truth unknown."""
    import numpy as np
    import pandas as pd

    return pd.DataFrame(
        [[0, 1, 0], [1, 0, np.nan], [1, 1, 0], [0, 0, 1]],
        index=["a", "b", "c", "d"],
        columns=["drusen", "cyst", "fluid"],
    )
