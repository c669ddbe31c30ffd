"""Batches of messages, as Anthropic's API words them: submitted and read without files."""

import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from .anthropic_api import Anthropic
from .batch_work import BatchWork, jsonl
from .behaviour import Fate, Statistics
from .http import Rejected, Request, Response
from .routes import Route

_PATH = "/v1/messages/batches"
_COUNTED = ("succeeded", "errored", "canceled", "expired")


@dataclass
class _Batch:
    """``began`` and ``seconds``: when work on it began, on a monotonic clock, and how long it
    takes; ``requests`` by custom id; ``results``: a line each, once it has ended."""

    id: str
    created_at: str
    began: float
    seconds: float
    requests: dict[str, bytes]
    results: list[dict[str, Any]] = field(default_factory=list)
    ended: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As the API tells of it."""
        done = [line["result"]["type"] for line in self.results]
        left = 0 if self.ended else len(self.requests)
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": "ended" if self.ended else "in_progress",
            "request_counts": {"processing": left, **{k: done.count(k) for k in _COUNTED}},
            "created_at": self.created_at,
            "expires_at": self.created_at,
            "ended_at": self.created_at if self.ended else None,
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": f"{_PATH}/{self.id}/results" if self.ended else None,
        }


class AnthropicBatches:
    """/v1/messages/batches, by what answers messages one by one.

    A batch takes as long as an answer does. The faults of ``fate`` befall its requests (see
    `BatchWork`): a "hung" one expires, and the result of a "truncated" one is billed and missing.
    They also befall every exchange: one whose reply is lost was carried out.
    """

    def __init__(
        self, messages: Anthropic, fate: Callable[[bytes], Fate], statistics: Statistics
    ) -> None:
        self.error = messages.error
        self._work = BatchWork(messages.answer, self.error, fate, statistics)
        self._fate, self._statistics = fate, statistics
        self._batches: dict[str, _Batch] = {}
        of = rf"{_PATH}/(?P<name>[\w-]+)"
        self.routes = (
            Route("POST", _PATH, self._create, fails=True),
            Route("GET", _PATH, self._list, fails=True),
            Route("GET", of, self._look, fails=True),
            Route("GET", rf"{of}/results", self._results, fails=True),
            Route("POST", rf"{of}/cancel", self._cancel, fails=True),
        )

    def _create(self, request: Request) -> Response:
        requests = _requests(request.json().get("requests"))
        fate = self._fate(b"batch " + request.body)
        now = datetime.now(UTC).isoformat()
        name = f"msgbatch_{secrets.token_hex(12)}"
        batch = _Batch(name, now, time.monotonic(), fate.delay, requests)
        self._batches[name] = batch
        self._statistics.batches += 1
        return Response(200, batch.as_dict())

    def _list(self, request: Request) -> Response:
        newest = list(reversed(self._batches.values()))
        names = [batch.id for batch in newest]
        after = request.query.get("after_id")
        start = names.index(after) + 1 if after in names else 0
        limit = request.query.get("limit", "20")
        most = min(1000, int(limit)) if limit.isdecimal() and len(limit) < 5 else 20
        shown = [self._now(batch).as_dict() for batch in newest[start : start + most]]
        ends = (shown[0]["id"], shown[-1]["id"]) if shown else (None, None)
        more = len(newest) > start + most
        told = {"data": shown, "has_more": more, "first_id": ends[0], "last_id": ends[1]}
        return Response(200, told)

    def _look(self, request: Request, name: str) -> Response:
        return Response(200, self._batch(name).as_dict())

    def _results(self, request: Request, name: str) -> Response:
        batch = self._batch(name)
        if not batch.ended:
            raise Rejected(404, f"{name} is still in progress")
        return Response(200, jsonl(batch.results))

    def _cancel(self, request: Request, name: str) -> Response:
        batch = self._batch(name)
        if not batch.ended:
            done = (time.monotonic() - batch.began) / max(batch.seconds, 1e-9)
            self._answer(batch, int(done * len(batch.requests)))
        return Response(200, batch.as_dict())

    def _batch(self, name: str) -> _Batch:
        if name not in self._batches:
            raise Rejected(404, f"no batch {name}")
        return self._now(self._batches[name])

    def _now(self, batch: _Batch) -> _Batch:
        """The batch as it stands by now."""
        if not batch.ended and time.monotonic() - batch.began >= batch.seconds:
            self._answer(batch, len(batch.requests))
        return batch

    def _answer(self, batch: _Batch, many: int) -> None:
        """Answers the first ``many`` requests; the others were cancelled."""
        for place, (name, body) in enumerate(batch.requests.items()):
            fault, response = self._work.answered(body) if place < many else (None, None)
            if response is None:
                result: dict[str, Any] = {"type": "expired" if fault else "canceled"}
            elif response.status == 200:
                result = {"type": "succeeded", "message": response.content}
            else:
                result = {"type": "errored", "error": response.content}
            if fault != "truncated":
                batch.results.append({"custom_id": name, "result": result})
        batch.ended = True


def _requests(listed: Any) -> dict[str, bytes]:
    """Custom id -> body; raises Rejected for what is no list of requests."""
    if not isinstance(listed, list) or not listed:
        raise Rejected(400, "requests: expected a list that is not empty")
    found: dict[str, bytes] = {}
    for one in listed:
        told = one if isinstance(one, dict) else {}
        name, params = told.get("custom_id"), told.get("params")
        if not (isinstance(name, str) and isinstance(params, Mapping)) or name in found:
            raise Rejected(400, "requests: expected a custom_id of its own, and params")
        found[name] = json.dumps(params).encode()
    return found
