"""A plain pool: n items of anything, of each of which somebody finds out what was lost on it."""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .datasets.base import HeldTruths
from .errors import InputError, check_known, unknown
from .oracles import Told
from .space import QuestionSpace
from .types import Ask, Floats, Indices, Sample, Truths

if TYPE_CHECKING:
    import pandas as pd

NAME, CONCEPT = "pool", "item"
MAX_ITEMS = 100_000_000
Names = str | Sequence[str]


class Pool(QuestionSpace):
    """Items 0 ... n - 1, each with a loss in [0, 1] that is told: texts, tables, robots, anything.

    ``Audit(pool, half_width=...)`` says which to look at (``call.item``) and certifies the mean
    loss of all n, and of groups. It is a space with one question about every item.

    ``features``: n x d finite numbers, by which losses are foreseen: items that are near each other
    are taken to fare alike. ``groups``: n rows, whose columns say what an item belongs to; targets
    ``group:COLUMN`` are the mean losses of each of its values. ``ids``: n names that differ, by
    which a cohort and results know the items; default: their numbers. ``texts``: n texts that say
    what each item is, for failures and the report. ``name``: of them all.
    Without features nothing needs torch. Raises InputError for another number of rows or ids, for
    ids that repeat, and for numbers or groups that are missing.
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
        super().__init__(Items(n, features, groups, ids, name, texts), oracle=Told())

    @classmethod
    def from_frame(
        cls, df: "pd.DataFrame", *, id: str = "", text: Names = (), group: Names = (), **more: Any
    ) -> "Pool":
        """Return the pool of the rows of a table.

        Args:
            df: The table, a row per item.
            id: The column of names that differ. Default: the numbers of the rows, from 0.
            text: The column that says what an item is, or several: failures and the report show it.
            group: The column whose values are groups, or several: targets ``group:COLUMN``.
            more: ``features`` and ``name``, as ``Pool`` takes them.

        Raises:
            InputError: The table lacks a column, has no rows, or as ``Pool`` raises it.
        """
        texts, groups = ([each] if isinstance(each, str) else [*each] for each in (text, group))
        for column in [*texts, *groups, *filter(None, [id])]:
            check_known("column", column, [*map(str, df)], "pool")
        rows, many = df[texts].astype(str).to_dict("records"), len(texts) > 1
        words = ["\n".join(f"{c}: {v}" if many else v for c, v in row.items()) for row in rows]
        ids, table = df[id].astype(str).tolist() if id else None, df[groups] if groups else None
        return cls(len(df), groups=table, ids=ids, texts=words if texts else None, **more)

    def __repr__(self) -> str:
        columns = self.dataset.metadata_columns
        return f"Pool({self.size} items{', groups ' if columns else ''}{', '.join(columns)})"


class Items(HeldTruths):
    """The items of a pool as samples: no image, no truth but that nothing is to be lost."""

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
            raise InputError(f"pool: expected n, a whole number from 1 to {MAX_ITEMS}, got {n!r}")
        if ids is not None and not len(ids) == len({*ids}) == n:
            raise InputError(
                f"pool: ids: expected {n} names that differ, got {len(ids)}, {len({*ids})} of them "
                "different"
            )
        if texts is not None and len(texts) != n:
            raise InputError(f"pool: texts: expected {n}, one per item, got {len(texts)}")
        super().__init__(np.zeros((int(n), 1), np.int8))
        self.name, self._texts, self._ids = name, texts, None if ids is None else [*map(str, ids)]
        self.features = None if features is None else _numbers(features, int(n))
        self._rows: Indices = np.zeros(int(n), np.int64)
        self._values: dict[str, npt.NDArray[np.object_]] = {}  # by row of the profile
        if groups is not None:
            self._group(groups)

    def _group(self, groups: "pd.DataFrame") -> None:
        """Items with the same groups share a row of the profile."""
        import pandas as pd

        table = pd.DataFrame(groups).rename(columns=str).reset_index(drop=True)
        if len(table) != len(self) or not len(table.columns) or not table.columns.is_unique:
            raise InputError(
                f"pool: groups: expected a table of {len(self)} rows, one per item, and columns "
                f"whose names differ, got {len(table)} rows and columns {list(table.columns)}"
            )
        if table.isna().to_numpy().any():
            row, column = map(int, np.argwhere(table.isna().to_numpy())[0])
            raise InputError(
                f"pool: groups: expected a value in every row, got none in column "
                f"{table.columns[column]!r}, row {row}; call it something, such as 'unknown'"
            )
        self._rows = (
            table.groupby(list(table.columns), sort=False).ngroup().to_numpy().astype(np.int64)
        )
        _, first = np.unique(self._rows, return_index=True)
        self._values = {c: table[c].iloc[first].to_numpy(object) for c in table.columns}

    @property
    def metadata_columns(self) -> tuple[str, ...]:
        return tuple(self._values)

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
        told = [(c, values.tolist()) for c, values in self._values.items()]
        digest.update(repr(told).encode() + self._rows.tobytes() if told else b"")
        digest.update(b"" if self._ids is None else repr(self._ids).encode())
        digest.update(b"" if self._texts is None else repr(("texts", [*self._texts])).encode())
        return digest.hexdigest()


def _numbers(features: npt.ArrayLike, n: int) -> Floats:
    table = np.asarray(features, np.float64)
    if table.ndim != 2 or len(table) != n:
        shape = " x ".join(map(str, table.shape))
        raise InputError(f"pool: features: expected {n} rows of d numbers, got shape {shape}")
    if not np.isfinite(table).all():
        row = int(np.argwhere(~np.isfinite(table))[0, 0])
        raise InputError(f"pool: features: expected finite numbers, got others in row {row}")
    return table
