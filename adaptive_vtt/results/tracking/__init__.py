"""Figures of a running audit, sent to MLflow, Weights & Biases or TensorBoard.

    with Audit(space, model, half_width=0.05) as audit, tracked(audit, "mlflow") as follow:
        audit.run([True, follow])

Calls, cost and every target's interval go there while the audit runs, its settings before, its
result afterwards. No key and no address of an endpoint does. Whatever goes wrong with it is one
warning, and never keeps an audit waiting (``following``).
"""

from typing import TYPE_CHECKING

from ...utils.importing import lazily
from .backends import Backend, Name, backend

if TYPE_CHECKING:
    from .following import Follower, tracked

__getattr__, __dir__ = lazily(__name__)
__all__ = ["Backend", "Follower", "Name", "backend", "tracked"]
