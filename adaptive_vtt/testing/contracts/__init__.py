"""What every protocol promises, as suites that pytest runs over your own implementation::

    from adaptive_vtt.testing.contracts import RelationContract

    class TestMine(RelationContract):
        def make(self):
            return Mine()

Each test makes what it tests anew. A suite's other methods say what is tried on it (prompts,
samples, observations ...); override those that do not fit.
"""

from typing import TYPE_CHECKING

from ...utils.lazy import lazily

if TYPE_CHECKING:
    from .datasets import DatasetContract
    from .journals import JournalContract
    from .models import ModelContract
    from .oracles import OracleContract
    from .relations import RelationContract
    from .strategies import StrategyContract
    from .surrogates import SurrogateContract

_HOMES = {
    "DatasetContract": "datasets",
    "JournalContract": "journals",
    "ModelContract": "models",
    "OracleContract": "oracles",
    "RelationContract": "relations",
    "StrategyContract": "strategies",
    "SurrogateContract": "surrogates",
}

__all__ = [
    "DatasetContract",
    "JournalContract",
    "ModelContract",
    "OracleContract",
    "RelationContract",
    "StrategyContract",
    "SurrogateContract",
]


__getattr__ = lazily(__name__, _HOMES)
