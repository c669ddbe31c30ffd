"""Pools: n numbered items of any kind, whose losses the user measures."""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .datasets.base import HeldTruths, finite_rows
from .errors import check_known, unexpected, unknown
from .oracles import GivenLosses
from .space import QuestionSpace
from .types import Ask, Indices, Sample, Truths

if TYPE_CHECKING:
    import pandas as pd

NAME, CONCEPT = "pool", "item"
"""Default name of a pool, and its only concept."""
MAX_ITEMS = 100_000_000
Names = str | Sequence[str]


class Pool(QuestionSpace):
    """Items 0 ... n - 1, such as texts, tables or robots, each with a loss in [0, 1].

    ``Audit(pool, half_width=...)`` chooses items (``call.item``), takes their losses from the user,
    and certifies the mean loss of all n items and of groups. A pool is a space with one question
    per item. It needs PyTorch only if it has features.

    Args:
        n: Number of items.
        features: Finite numbers (n x d) from which losses are predicted. Items that are near each
            other are expected to have similar losses.
        groups: Table of n rows, whose columns are groups: targets ``group:COLUMN`` are the mean
            losses of each value.
        ids: Distinct names of the items, for a cohort and results. None: their numbers.
        texts: Texts that describe the items, for failures and the report.
        name: Name of the pool.

    Raises:
        InputError: The number of rows or ids is not n, ids repeat, or numbers or groups are
            missing.
    """

    kinds = ("overall", "group:COLUMN")

    def __init__(
        self,
        n: int,
        features: npt.ArrayLike | None = None,
        groups: "pd.DataFrame | None" = None,
        *,
        ids: Sequence[str] | None = None,
        texts: Sequence[str] | None = None,
        name: str = NAME,
    ) -> None:
        super().__init__(Items(n, features, groups, ids, name, texts), oracle=GivenLosses())

    @classmethod
    def from_frame(
        cls, df: "pd.DataFrame", *, id: str = "", text: Names = (), group: Names = (), **more: Any
    ) -> "Pool":
        """Return a pool with an item per row of a table.

        Args:
            df: The table.
            id: Column of distinct names. Default: the numbers of the rows, from 0.
            text: Column, or columns, that describe an item in failures and the report.
            group: Column, or columns, of groups: targets ``group:COLUMN``.
            more: ``features`` and ``name``, as ``Pool`` takes them.

        Raises:
            InputError: The table lacks a column or has no rows, or ``Pool`` raises it.
        """
        texts = [text] if isinstance(text, str) else [*text]
        groups = [group] if isinstance(group, str) else [*group]
        for column in [*texts, *groups, *filter(None, [id])]:
            check_known("column", column, [*map(str, df)], "pool")
        rows, several = df[texts].astype(str).to_dict("records"), len(texts) > 1
        words = ["\n".join(f"{c}: {v}" if several else v for c, v in row.items()) for row in rows]
        ids = df[id].astype(str).tolist() if id else None
        table = df[groups] if groups else None
        return cls(len(df), groups=table, ids=ids, texts=words if texts else None, **more)

    def __repr__(self) -> str:
        columns = self.dataset.metadata_columns
        return f"Pool({self.size} items{', groups ' if columns else ''}{', '.join(columns)})"


class Items(HeldTruths):
    """The items of a pool as samples without images, whose truth is a loss of 0."""

    concepts = (CONCEPT,)
    has_images = False

    def __init__(
        self,
        n: int,
        features: npt.ArrayLike | None,
        groups: "pd.DataFrame | None",
        ids: Sequence[str] | None = None,
        name: str = NAME,
        texts: Sequence[str] | None = None,
    ) -> None:
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 0 < n <= MAX_ITEMS:
            raise unexpected("pool", f"n, a whole number from 1 to {MAX_ITEMS}", repr(n))
        if ids is not None and not len(ids) == len({*ids}) == n:
            got = f"{len(ids)}, {len({*ids})} of them different"
            raise unexpected("pool: ids", f"{n} names that differ", got)
        if texts is not None and len(texts) != n:
            raise unexpected("pool: texts", f"{n}, one per item", len(texts))
        super().__init__(np.zeros((int(n), 1), np.int8))
        self.name, self._texts, self._ids = name, texts, None if ids is None else [*map(str, ids)]
        self.features = (
            None if features is None else finite_rows(features, int(n), "pool: features")
        )
        self._rows: Indices = np.zeros(int(n), np.int64)
        self._values: dict[str, npt.NDArray[np.object_]] = {}  # column -> value per profile row
        if groups is not None:
            self._group(groups)
        self.metadata_columns = tuple(self._values)

    def _group(self, groups: "pd.DataFrame") -> None:
        """Let items with the same groups share a row of the profile."""
        import pandas as pd

        table = pd.DataFrame(groups).rename(columns=str).reset_index(drop=True)
        if len(table) != len(self) or not len(table.columns) or not table.columns.is_unique:
            expected = f"a table of {len(self)} rows, one per item, and columns whose names differ"
            got = f"{len(table)} rows and columns {list(table.columns)}"
            raise unexpected("pool: groups", expected, got)
        if (missing := np.argwhere(table.isna().to_numpy())).size:
            row, column = map(int, missing[0])
            got = f"none in column {table.columns[column]!r}, row {row}"
            remedy = "name it, such as 'unknown'"
            raise unexpected("pool: groups", "a value in every row", got, remedy)
        self._rows = np.asarray(table.groupby(list(table.columns), sort=False).ngroup(), np.int64)
        _, first = np.unique(self._rows, return_index=True)
        self._values = {c: table[c].iloc[first].to_numpy(object) for c in table.columns}

    @property
    def profile(self) -> tuple[Truths, Indices]:
        copies = np.bincount(self._rows)
        return np.zeros((len(copies), 1), np.int8), copies

    def profile_row(self, samples: Indices) -> Indices:
        return self._rows[samples]

    def metadata_values(self, column: str) -> npt.NDArray[np.object_]:
        if column not in self._values:
            raise unknown("column of groups", column, self.metadata_columns, "pool")
        return self._values[column]

    def sample_id(self, index: int) -> str:
        return str(index) if self._ids is None else self._ids[index]

    def sample(self, index: int) -> Sample:
        groups: dict[str, Any] = {c: v[self._rows[index]] for c, v in self._values.items()}
        asks = {} if self._texts is None else {CONCEPT: Ask(self._texts[index])}
        return Sample(self.sample_id(index), None, {CONCEPT: 0}, groups, asks=asks)

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.blake2b(repr((self.name, len(self))).encode(), digest_size=12)
        groups = [(c, values.tolist()) for c, values in self._values.items()]
        digest.update(repr(groups).encode() + self._rows.tobytes() if groups else b"")
        digest.update(b"" if self._ids is None else repr(self._ids).encode())
        digest.update(b"" if self._texts is None else repr(("texts", [*self._texts])).encode())
        return digest.hexdigest()
