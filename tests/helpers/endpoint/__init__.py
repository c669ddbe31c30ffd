"""A model endpoint on loopback that delays and fails at rates that are set."""

from collections.abc import Iterator
from contextlib import contextmanager

from adaptive_vtt.datasets import Dataset

from .behaviour import FAULTS, Behaviour, Statistics
from .fake_models import DemoModel, FakeModel, Reply
from .openai_api import DIALECTS, Dialect
from .server import MODEL, DemoServer

__all__ = [
    "DIALECTS",
    "FAULTS",
    "MODEL",
    "Behaviour",
    "DemoModel",
    "DemoServer",
    "Dialect",
    "FakeModel",
    "Reply",
    "Statistics",
    "demo_server",
]


@contextmanager
def demo_server(
    fake: FakeModel | Dataset,
    behaviour: Behaviour | None = None,
    *,
    key: str | None = None,
    like: str = "openai",
) -> Iterator[DemoServer]:
    """Serves ``fake``, or one that recognises a dataset's concepts.

    ``like``: whose chat completions it serves, a name of ``DIALECTS``.
    """
    if isinstance(fake, Dataset):
        fake = DemoModel(fake.concepts)
    with DemoServer(fake, behaviour, key=key, dialect=DIALECTS[like]) as server:
        yield server
