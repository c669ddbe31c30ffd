"""Suites of tests of the protocols, which pytest runs on a user's implementation::

    from adaptive_vtt.testing.contracts import RelationContract

    class TestMine(RelationContract):
        def make(self):
            return Mine()

Every test calls ``make``. The other methods of a suite return the inputs of its tests (prompts,
samples, observations ...) and can be overridden.
"""

from typing import TYPE_CHECKING

from ...utils.importing import lazily

if TYPE_CHECKING:
    from .answers import ModelContract, OracleContract
    from .inputs import DatasetContract, RelationContract
    from .learners import StrategyContract, SurrogateContract

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "DatasetContract",
    "ModelContract",
    "OracleContract",
    "RelationContract",
    "StrategyContract",
    "SurrogateContract",
]
