"""An audit in one line: ``adaptive_vtt.audit("folder", my_function)``."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..datasets import as_dataset
from ..datasets.labels import Labels
from ..journal.files import JOURNAL
from ..models.base import ModelSource
from ..oracles import Oracle
from ..relations import Relation
from ..results.result import Result
from .asking import Audit
from .progress import Hooks
from .suggestion import suggested


def audit(
    data: Any,
    model: ModelSource,
    *,
    labels: Labels | None = None,
    concepts: list[str] | None = None,
    relations: Iterable[str | Relation] | None = None,
    oracle: Oracle | str | None = None,
    out: Path | str | None = None,
    on_progress: Hooks = True,
    progress: Hooks = None,
    **options: Any,
) -> Result:
    """An audit in one line: every interval within half_width = 0.05, unless options say otherwise.

    - ``data``: a folder, a table of labels, images or a Dataset (``datasets.as_dataset``), with
      ``labels`` where images come without; where nobody has any, ``concepts`` names what the model
      answers.
    - ``model``: a function (list of images -> n x C of P(yes)) or any other model, see ``Audit``.
    - ``relations``, ``oracle``, and the option ``targets``: by what is known (``suggestion``).
    - ``out``: folder for journal.db, result.json and report.html. An audit with the same settings
      that stands there is gone on with.
    - ``on_progress``: what follows the run, see ``Audit.run``. Default: a bar.
    - ``options``: those of ``Audit``.

    Raises InputError for data of which nothing can be asked, and whatever ``Audit`` raises.
    """
    found = suggested(as_dataset(data, labels, concepts), relations, oracle)
    journal = None if out is None else Path(out) / JOURNAL
    with Audit(found.space, model, journal=journal, **found.options(options)) as begun:
        result = begun.run(on_progress, progress=progress)
    if out is not None:
        result.save(out)
    return result
