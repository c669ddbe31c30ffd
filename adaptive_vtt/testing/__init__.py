"""Tools for users' tests: deterministic test doubles, contract suites for plug-ins, and gates."""

from typing import TYPE_CHECKING

from ..utils.importing import lazily

if TYPE_CHECKING:
    from .doubles import ScriptedModel, tiny_dataset

__getattr__, __dir__ = lazily(__name__)
__all__ = ["ScriptedModel", "tiny_dataset"]
