"""The requests of a batch, answered one by one: what befalls each, and the bill."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .behaviour import Fate, Fault, Statistics
from .http import Rejected, Response


class BatchWork:
    """``answer``: the reply to a request's body, whatever is wrong with it; ``error``: how the
    protocol words one that failed. Faults follow from ``fate``: "limited" and "broken" ones fail, a
    "hung" one is never answered, and a "truncated" one is billed."""

    def __init__(
        self,
        answer: Callable[[bytes], Response],
        error: Callable[[Rejected], Response],
        fate: Callable[[bytes], Fate],
        statistics: Statistics,
    ) -> None:
        self._answer, self._error = answer, error
        self._fate, self._statistics = fate, statistics

    def answered(self, body: bytes) -> tuple[Fault | None, Response | None]:
        """What befalls one request, and its reply, if there is one; on the bill."""
        counts, fate = self._statistics, self._fate(body)
        counts.requests += 1
        counts.batched += 1
        if fate.fault in ("limited", "broken", "hung"):
            counts.fail(fate.fault)
            status = 429 if fate.fault == "limited" else fate.status
            failed = Rejected(status, "It failed; try again.")
            return fate.fault, None if fate.fault == "hung" else self._error(failed)
        response = self._answer(body)
        if response.usage is None:
            counts.rejected += 1
        else:
            counts.bill(response.usage, fate.fault)
        return fate.fault, response


def jsonl(lines: Iterable[Mapping[str, Any]]) -> bytes:
    """Lines of JSON."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
