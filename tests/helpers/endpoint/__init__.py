"""A model endpoint on loopback with delays and faults at set rates."""

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
    """Serve a fake model, by default one that recognises a dataset's concepts.

    ``like`` is the dialect of its chat completions, a name of ``DIALECTS``.
    """
    if isinstance(fake, Dataset):
        fake = DemoModel(fake.concepts)
    with DemoServer(fake, behaviour, key=key, dialect=DIALECTS[like]) as server:
        yield server
