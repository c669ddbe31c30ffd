"""What came of strategies compared: tables, a conclusion, a page, and the files that hold them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pandas as pd

from ..errors import InputError
from ..types import JsonObject
from ..utils.figures import points
from ..utils.files import write_text
from ..utils.tables import csv_text, latex
from . import summary
from .runs import Run

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

RECORD = "compare.json"
OTHERS: JsonObject = {"half_width": None, "confidence": None, "targets": (), "truth": None}
"""What it holds beside runs, and what stands for each where nothing is certified."""
PAPER_LEVELS = 3
"""Half-widths whose calls stand in the LaTeX table: the last ones; the CSV file has all."""
PAPER_COLUMNS = (summary.RATIO, "RMSE at stop", "coverage", "ever missed")
"""What stands beside them there, as far as it is known."""
PLAIN_NUMBERS = "%.10g"
"""90 as 90, and what the tables rounded as they did."""


@dataclass(frozen=True)
class StrategyComparison:
    """What came of strategies compared on one space.

    - ``runs``: a record per audit, as compare.json has them.
    - ``half_width``: what every audit was to certify. None: nothing.
    - ``confidence``, ``targets``: how surely, and of what, by name.
    - ``truth``: the true mean loss of every target. None: not known.
    """

    runs: Sequence[Run]
    half_width: float | None = None
    confidence: float | None = None
    targets: Sequence[str] = ()
    truth: Sequence[float] | None = None

    @classmethod
    def read(cls, folder: Path | str) -> Self:
        """The comparison that a folder holds, as ``save`` and ``avtt compare`` leave one there.
        Raises InputError where it holds none."""
        file = Path(folder) / RECORD
        try:
            told = json.loads(file.read_text(encoding="utf-8"))
            return cls(told["runs"], *(told.get(name, of) for name, of in OTHERS.items()))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{file}: expected what 'avtt compare' writes, got none that can be read "
                f"({type(error).__name__})"
            ) from None

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per strategy, medians over the repeats: calls to each half-width, as a multiple
        of uniform's, errors and coverage where the truth is known. Where nothing is certified calls
        to each mean uncertainty of the answers. NA: not reached, or not known."""
        return self._summary.convert_dtypes()

    @cached_property
    def estimators(self) -> pd.DataFrame:
        """One row per strategy and estimator that its draws could be made into: errors against the
        truth. Without rows where that is not known."""
        return self._estimators.convert_dtypes()

    @property
    def conclusion(self) -> str:
        """What the repeats tell of the calls that strategies need, and what they cannot tell."""
        return " ".join(f"{sentence}." for sentence in self.conclusions)

    @cached_property
    def conclusions(self) -> list[str]:
        """The same, a sentence each; none where nothing is certified."""
        return [] if self.half_width is None else summary.conclusion(self.runs)

    @cached_property
    def peeking(self) -> JsonObject | None:
        """What came of stopping by normal intervals of the uniform draws; None: not known."""
        return summary.peeking_summary(self.runs)

    def figures(self) -> "dict[str, Figure]":
        """The Plotly figures of the page by name: "widths" and "calls", or, where nothing is
        certified, "uncertainty"."""
        from plotly.graph_objects import Figure

        drawn = summary.figures(self.runs, self.half_width)
        return {name: Figure(figure) for name, figure in drawn.items()}

    def to_dict(self) -> JsonObject:
        """The comparison as compare.json has it; what is unknown is null."""
        if self.half_width is None:
            return {"summary": _records(self._summary), "runs": list(self.runs)}
        return {
            "half_width": self.half_width,
            "confidence": self.confidence,
            "targets": list(self.targets),
            "truth": None if self.truth is None else list(self.truth),
            "conclusion": self.conclusion,
            "summary": _records(self._summary),
            "estimators": _records(self._estimators),
            "peeking": self.peeking,
            "runs": list(self.runs),
        }

    def save(self, folder: Path | str) -> list[Path]:
        """Writes compare.html, compare.json, and compare.csv and compare.tex with ``table``; where
        the truth is known also compare-estimators.csv and .tex. Gives their paths."""
        files = {
            "compare.html": self._page(),
            RECORD: json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n",
            "compare.csv": csv_text(self.table),
            "compare.tex": latex(self._for_paper(), "compare", self._caption(), PLAIN_NUMBERS),
        }
        if len(self.estimators):
            name, table = "compare-estimators", self.estimators
            caption = f"Errors of estimates made from the same draws, over {self._repeats}."
            files[f"{name}.csv"] = csv_text(table)
            files[f"{name}.tex"] = latex(table, name, caption, PLAIN_NUMBERS)
        for name, text in files.items():
            write_text(Path(folder) / name, text)
        return [Path(folder) / name for name in files]

    @cached_property
    def _summary(self) -> pd.DataFrame:
        if self.half_width is None:
            return summary.uncertainty_summary(self.runs)
        return summary.certified_summary(self.runs, self.truth)

    @cached_property
    def _estimators(self) -> pd.DataFrame:
        if self.truth is None:
            return pd.DataFrame()
        return summary.estimator_summary(self.runs, self.truth)

    @property
    def _repeats(self) -> str:
        count = self.runs[-1]["seed"] + 1
        return f"{count} repeat{'s' * (count > 1)}"

    def _page(self) -> str:
        if self.half_width is None or self.confidence is None:
            return summary.uncertainty_page(self.runs)
        tables = {"Calls, coverage and cost per strategy (medians over repeats)": self._peeked()}
        if len(self._estimators):
            title = "Estimates from the same draws (only 'certified' comes with a guarantee)"
            tables[title] = self._estimators
        return summary.certified_page(self.runs, self.half_width, self.confidence, tables)

    def _peeked(self) -> pd.DataFrame:
        """The table with the analyst who peeks among the strategies."""
        if not self.peeking:
            return self._summary
        calls = self.peeking["calls"]
        named = {"strategy": "uniform, peeking at normal intervals", "stopped at": calls}
        row = {**named, **self.peeking, f"calls to {self.half_width:g}": calls}
        rows = [*_records(self._summary), row]
        return pd.DataFrame(rows, columns=list(self._summary), dtype=object)

    def _for_paper(self) -> pd.DataFrame:
        """The columns that a page is wide enough for; those of which nothing is known are left
        out."""
        if self.half_width is None:
            return self.table.drop(columns=["repeats", "seconds per call"])
        known = [name for name in self.table if self.table[name].notna().any()]
        levels = [name for name in map(str, self.table) if name.startswith("calls to ")]
        levels = levels[-PAPER_LEVELS:]
        more = [name for name in PAPER_COLUMNS if name in known]
        return summary.calls_told(self.table, levels)[["strategy", *levels, *more]]

    def _caption(self) -> str:
        """In LaTeX; of columns and signs those that the table has."""
        sheet = self._for_paper()
        unknown = "; --: not reached" if bool(sheet.isna().any(axis=None)) else ""
        if self.half_width is None:
            return (
                "Median calls until the mean uncertainty of the answers is below a share of what "
                f"it was at first, over {self._repeats}{unknown}."
            )
        over = any(str(cell).startswith(">") for cell in sheet.to_numpy().flat)
        more = "; >: not reached by then" if over else ""
        if summary.RATIO in sheet:
            more += f"; {summary.RATIO}: median ratio at equal seeds"
        within = points(self.half_width).replace("+-", r"$\pm$")
        own = " Strategies of one's own draw anew each time." if summary.own(self.runs) else ""
        return (
            f"Median calls until all targets ({len(self.targets)}) are known to within "
            f"{within} at confidence {self.confidence:g}, over {self._repeats} with the "
            f"same seeds{more}{unknown}.{own}"
        )


def _records(table: pd.DataFrame) -> list[JsonObject]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
