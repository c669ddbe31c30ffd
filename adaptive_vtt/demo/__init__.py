"""The demo: a bundled classifier of clothes, and a chat server that answers by it."""

from typing import TYPE_CHECKING

from ..utils.importing import lazily

if TYPE_CHECKING:
    from .answers import Classifier
    from .server import DemoServer

__getattr__, __dir__ = lazily(__name__)
__all__ = ["Classifier", "DemoServer"]
