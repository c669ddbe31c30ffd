"""The result of strategies compared: tables, a conclusion, a page, and their files."""

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
from ..utils.files import text_in, write_text
from ..utils.tables import csv_text, latex
from . import summary
from .figures import figures, page
from .runs import Run

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

RECORD = "compare.json"
OTHERS: JsonObject = {"half_width": None, "confidence": None, "targets": (), "truth": None}
"""Its fields other than runs, and their values if nothing is certified."""
PAPER_LEVELS = 3
"""Number of half-widths in the LaTeX table, the last ones; the CSV file has all."""
PAPER_COLUMNS = (summary.RATIO, "RMSE at stop", "coverage", "ever missed")
"""Further columns of the LaTeX table, if they are known."""
PLAIN_NUMBERS = "%.10g"
"""90 as 90, and other numbers as the tables rounded them."""


@dataclass(frozen=True)
class StrategyComparison:
    """The result of strategies compared on one space.

    Attributes:
        runs: A record per audit, as compare.json has them.
        half_width: Goal of every audit; None: nothing was certified.
        confidence: Probability with which all intervals of an audit hold.
        targets: Names of the targets.
        truth: The true mean loss of every target; None: not known.
    """

    runs: Sequence[Run]
    half_width: float | None = None
    confidence: float | None = None
    targets: Sequence[str] = ()
    truth: Sequence[float] | None = None

    @classmethod
    def read(cls, folder: Path | str) -> Self:
        """Return the comparison that ``save`` or ``avtt compare`` wrote into a folder.

        Raises InputError if there is none.
        """
        file = Path(folder) / RECORD
        try:
            record = json.loads(text_in(file))
            others = (record.get(name, default) for name, default in OTHERS.items())
            return cls(record["runs"], *others)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{file}: expected what 'avtt compare' writes, got none that can be read "
                f"({type(error).__name__})"
            ) from None

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per strategy with medians over the repeats.

        Columns are calls to each half-width, calls as a multiple of uniform's, and, if the truth is
        known, errors and coverage. If nothing is certified, they are calls to each mean uncertainty
        of the answers. NA means not reached, or not known.
        """
        if self.half_width is None:
            return summary.uncertainty_summary(self.runs)
        return summary.certified_summary(self.runs, self.truth)

    @cached_property
    def estimators(self) -> pd.DataFrame:
        """A row per strategy and estimator with its errors; no rows if the truth is unknown."""
        if self.truth is None:
            return pd.DataFrame()
        return summary.estimator_summary(self.runs, self.truth)

    @property
    def conclusion(self) -> str:
        """The strategies that need fewer calls, and the comparisons that are undecided."""
        return " ".join(f"{sentence}." for sentence in self.conclusions)

    @cached_property
    def conclusions(self) -> list[str]:
        """The sentences of ``conclusion``; none if nothing is certified."""
        return [] if self.half_width is None else summary.conclusion(self.runs)

    def figures(self) -> "dict[str, Figure]":
        """Return the Plotly figures of the page by name.

        "widths" (of the widest interval), of several targets also "mean width" and "width of
        TARGET", and "calls"; or, where nothing is certified, "uncertainty".
        """
        return figures(self.runs, self.half_width, self.targets)

    def to_dict(self) -> JsonObject:
        """Return the comparison as compare.json has it; what is unknown is None."""
        record: JsonObject = {"summary": _records(self.table), "runs": list(self.runs)}
        if self.half_width is None:
            return record
        return {
            "half_width": self.half_width,
            "confidence": self.confidence,
            "targets": list(self.targets),
            "truth": None if self.truth is None else list(self.truth),
            "conclusion": self.conclusion,
            "estimators": _records(self.estimators),
            **record,
        }

    def save(self, folder: Path | str) -> list[Path]:
        """Write the comparison into a folder.

        Files are compare.html, compare.json, compare.csv and compare.tex with ``table``, and, if
        the truth is known, compare-estimators.csv and .tex.

        Returns:
            Their paths.
        """
        lead = "Medians over repeats with the same seeds"
        tables = {}
        if self.half_width is not None:
            lead = f"All intervals hold at all times with probability {self.confidence:g}"
            calls = self.table.filter(regex=f"^{summary.CALLS_TO}|^stopped at")
            sheet = self.table.assign(**-(-calls // 1))  # rounded up, as on the terminal
            tables = {"Calls, coverage and cost (medians)": summary.in_points(sheet)}
        if len(self.estimators):
            title = "Estimates from the same draws (only 'certified' comes with a guarantee)"
            tables[title] = errors = summary.in_points(self.estimators)
        files = {
            "compare.html": page(self.runs, f"{lead}.", self.conclusions, tables, self.targets),
            RECORD: json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n",
            "compare.csv": csv_text(self.table),
            "compare.tex": self._latex(),
        }
        if len(self.estimators):
            name = "compare-estimators"
            caption = f"Errors of estimates made from the same draws, over {self._repeats}."
            files[f"{name}.csv"] = csv_text(self.estimators)
            files[f"{name}.tex"] = latex(errors, name, caption, PLAIN_NUMBERS)
        for name, text in files.items():
            write_text(Path(folder) / name, text)
        return [Path(folder) / name for name in files]

    @property
    def _repeats(self) -> str:
        count = self.runs[-1]["seed"] + 1
        return f"{count} repeat{'s' * (count > 1)} with the same seeds"

    def _latex(self) -> str:
        """Return the columns that fit on a page, below a caption that explains them."""
        if self.half_width is None:
            sheet = self.table.drop(columns=["repeats", "seconds per call"])
            caption = "Median calls until the mean uncertainty is below a share of what it was"
        else:
            levels = [name for name in map(str, self.table) if name.startswith(summary.CALLS_TO)]
            levels, known = levels[-PAPER_LEVELS:], self.table.dropna(axis="columns", how="all")
            others = known.columns.intersection([*PAPER_COLUMNS])
            sheet = summary.to_read(self.table, levels, others.tolist())
            within = points(self.half_width).replace("+-", r"$\pm$")
            caption = (
                f"Median calls until all targets ({len(self.targets)}) are known to within "
                f"{within} at confidence {self.confidence:g}"
            )
        caption += f", over {self._repeats}; > or --: not reached by then."
        return latex(sheet, "compare", caption, PLAIN_NUMBERS)


def _records(table: pd.DataFrame) -> list[JsonObject]:
    records: list[JsonObject] = json.loads(table.to_json(orient="records"))
    return records
