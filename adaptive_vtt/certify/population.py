"""What targets are made of, written into the journal, so that no data are needed to check it.

A question is a number; which targets it belongs to follows from its sample, variant and
concept. With the truths of every sample and the targets' masks in the journal, membership, sizes
and the number of calls can be recomputed from the journal alone (``verify_draws``).
"""

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import JournalError
from ..types import TargetId
from .base import Population
from .targets import Target

if TYPE_CHECKING:
    from .certifier import Certifier

MAX_SAMPLES = 2_000_000
"""Samples up to which the population is journaled; of a larger dataset the journal would hold
little else."""


def describe_population(certifier: "Certifier | None") -> dict[str, Any] | None:
    """For the journal: truths by profile row, the row of every sample, what applies to what, and
    the masks of every target. None where nothing is certified, or the dataset is too large."""
    if certifier is None or len(certifier.space.dataset) > MAX_SAMPLES:
        return None
    space = certifier.space
    truths, _ = space.dataset.profile
    return {
        "answers": certifier.answers,
        "truths": pack(truths.astype(np.int8)),
        "rows": pack(space.dataset.profile_row(np.arange(len(space.dataset))).astype(np.int32)),
        "applicable": pack(space.applicable),
        "targets": [masks_of(target) for target in certifier.targets],
    }


def selected_by(packed: Mapping[str, Any], ids: Sequence[TargetId]) -> list[Target]:
    """The targets of ``describe_population``, under these names."""
    return [target_of(id, masks) for id, masks in zip(ids, packed["targets"], strict=True)]


def differs(packed: Mapping[str, Any], space: Population) -> str | None:
    """In what the questions of ``space`` are not those that ``describe_population`` tells of, so
    that targets would select others; None: in nothing."""
    own: dict[str, npt.NDArray[Any]] = {
        "truths": space.dataset.profile[0],
        "rows": space.dataset.profile_row(np.arange(len(space.dataset))),
        "applicable": space.applicable,
    }
    words = {
        "applicable": "which questions can be judged",
        "rows": "the samples",
        "truths": "what is true of the samples",
    }
    for name, told in words.items():
        if not np.array_equal(unpack(packed[name]), own[name]):
            return told
    return None


def masks_of(target: Target) -> dict[str, Any]:
    """What a target is made of, as JSON."""
    rows = None if target.rows is None else pack(target.rows)
    return {
        "variants": pack(target.variants),
        "concepts": pack(target.concepts),
        "sides": pack(target.sides),
        "rows": rows,
    }


def pack(array: npt.NDArray[Any]) -> dict[str, Any]:
    """An array as JSON: its kind, shape, and compressed bytes."""
    body = zlib.compress(np.ascontiguousarray(array).tobytes(), level=6)
    kind = array.dtype.newbyteorder("<").str
    return {"kind": kind, "shape": list(array.shape), "bytes": base64.b64encode(body).decode()}


def target_of(id: TargetId, masks: Mapping[str, Any]) -> Target:
    """The target that ``masks_of`` describes; raises JournalError where that is damaged."""
    rows = None if masks["rows"] is None else unpack(masks["rows"])
    variants, concepts, sides = (unpack(masks[name]) for name in ("variants", "concepts", "sides"))
    return Target(id, variants, concepts, sides, rows)


def unpack(packed: Mapping[str, Any]) -> npt.NDArray[Any]:
    """The array that ``pack`` wrote."""
    try:
        body = zlib.decompress(base64.b64decode(packed["bytes"]))
        return np.frombuffer(body, packed["kind"]).reshape(packed["shape"])
    except (ValueError, KeyError, TypeError, zlib.error):
        raise JournalError("journal: what a target consists of is damaged") from None
