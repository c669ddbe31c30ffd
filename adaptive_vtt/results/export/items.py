"""Export the items of a pool that have a high loss: of texts, cases or rows without images."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ...errors import InputError
from ...journal import Journal
from ...utils.files import whole_folder, write_text
from ...utils.tables import csv_text
from ..run import Run
from .failures import in_words

ITEMS, ITEM, LOSS, TEXT = "items", "item", "loss", "text"
NEXT = "next.csv"
"""File of a run folder in which people fill in the losses of the next items."""


def item_column(facts: Mapping[str, Any]) -> str:
    """Return the heading of the items' names in tables: that of the user's table, else "item".

    Args:
        facts: The facts of a journal.
    """
    columns = facts.get(ITEMS) or {}
    taken = (LOSS, TEXT, *(columns.get("group") or ()))
    return ITEM if columns.get("id") in (None, "", *taken) else str(columns["id"])


def export_items(source: Journal | Run, out: Path, *, least_loss: float = 0.5) -> int:
    """Write failures.csv: name, text if it is known, and loss of the items with a high loss.

    A loss is "unsure" where the reader was. The folder appears whole or not at all.

    Args:
        source: The run or journal of a pool's audit.
        out: The folder, new or empty.
        least_loss: The smallest loss that is exported.

    Returns:
        The number of items.

    Raises:
        InputError: No item has such a loss, or the folder is in use.
    """
    run = Run.of(source)
    table = run.table[run.table["loss"] >= least_loss]
    if table.empty:
        raise InputError(f"export: no item has a loss of {least_loss:g} or more")
    answers, words = in_words(table, run)
    texts = {TEXT: answers["asked"]} if words else {}
    loss = answers["loss"].map("{:g}".format).mask(answers["unanswered"].notna(), "unsure")
    rows = pd.DataFrame({item_column(run.raw): answers["sample"], **texts, LOSS: loss})
    with whole_folder(out) as folder:
        write_text(folder / "failures.csv", csv_text(rows))
    return len(rows)
