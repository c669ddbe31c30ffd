"""Batches that were sent, as the record of an audit keeps them: see `models.base.Record`."""

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from ...journal.endpoint_facts import BatchFacts
from ..base import Record


def key_of(requests: Mapping[int, Any]) -> str:
    """A hash of what is sent, and a few random digits: no two batches are marked alike."""
    text = json.dumps(list(requests.items())).encode()
    return f"{hashlib.blake2b(text, digest_size=8).hexdigest()}-{secrets.token_hex(4)}"


def name_of(batch: BatchFacts, number: int) -> str:
    """What a request is called: providers take 64 letters, digits, _ and -."""
    return f"{batch.key}_{number}"


class Sent:
    """The batches of a record, which is kept as they are."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._batches = {batch.key: batch for batch in record.read()}

    def about(self, calls: Mapping[int, Any]) -> list[BatchFacts]:
        """Those in which any of the calls was sent, in the order of sending."""
        return [b for b in self._batches.values() if not calls.keys().isdisjoint(b.calls)]

    def put(self, batch: BatchFacts, **changes: Any) -> BatchFacts:
        """The batch, new or changed, once the record has it."""
        batch = batch.model_copy(update=changes)
        self._batches[batch.key] = batch
        self._record.write(list(self._batches.values()))
        return batch

    def drop(self, batch: BatchFacts) -> None:
        """Nothing of this batch was done."""
        del self._batches[batch.key]
        self._record.write(list(self._batches.values()))


class Unkept:
    """A record that goes when the process goes."""

    def __init__(self) -> None:
        self._batches: tuple[BatchFacts, ...] = ()

    def read(self) -> tuple[BatchFacts, ...]:
        return self._batches

    def write(self, batches: Sequence[BatchFacts]) -> None:
        self._batches = tuple(batches)
