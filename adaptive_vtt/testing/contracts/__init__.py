"""The promises of every protocol, as suites that pytest runs over your own implementation::

    from adaptive_vtt.testing.contracts import RelationContract

    class TestMine(RelationContract):
        def make(self):
            return Mine()

Each test makes what it tests. A suite's other methods say what is tried on it (prompts,
samples, observations ...); override those that do not fit.
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
