"""Batches of chat completions, as OpenAI's API words them: files, and jobs made of them."""

import json
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .batch_work import BatchWork, jsonl
from .behaviour import Fate, Statistics
from .http import Rejected, Request, Response
from .openai_api import OpenAI
from .routes import Route

_CHAT = "/v1/chat/completions"
_MAX_STORED = 512 * 2**20
"""Bytes of all files together."""
_BOUNDARY = re.compile(r'multipart/form-data;.*boundary="?([^";]+)"?', re.IGNORECASE)
_NAME = re.compile(rb'name="([^"]*)"')


@dataclass
class _Batch:
    """``began`` and ``seconds``: when work on it began, on a monotonic clock, and how long it
    takes. ``requests`` by custom id."""

    id: str
    input_file: str
    created_at: int
    began: float
    seconds: float
    metadata: Any
    requests: dict[str, bytes] = field(default_factory=dict)
    status: str = "in_progress"
    errors: list[str] = field(default_factory=list)
    output: str | None = None
    failures: str | None = None
    counts: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """As the API tells of it."""
        errors = [{"code": "invalid_request", "message": e, "line": None} for e in self.errors]
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": _CHAT,
            "errors": {"object": "list", "data": errors} if errors else None,
            "input_file_id": self.input_file,
            "completion_window": "24h",
            "status": self.status,
            "output_file_id": self.output,
            "error_file_id": self.failures,
            "created_at": self.created_at,
            "request_counts": {"total": len(self.requests), "completed": 0, "failed": 0}
            | self.counts,
            "metadata": self.metadata,
        }


class OpenAIBatches:
    """/v1/files and /v1/batches, by the brain that answers one by one.

    A file makes one batch, and is gone then. A batch takes as long as an answer does. The faults of
    ``fate`` befall its requests (see `BatchWork`): a "hung" one makes the batch expire, and the
    result of a "truncated" one is missing. They also befall every exchange: one whose reply is lost
    was carried out. A batch whose own fate is "broken" fails as a whole. A cancelled one has done
    as much as it had time for.
    """

    def __init__(
        self, openai: OpenAI, fate: Callable[[bytes], Fate], statistics: Statistics
    ) -> None:
        self.error = openai.error
        self._work = BatchWork(self._chat, self.error, fate, statistics)
        self._openai, self._fate, self._statistics = openai, fate, statistics
        self._files: dict[str, bytes] = {}
        self._batches: dict[str, _Batch] = {}
        of = r"/v1/batches/(?P<name>[\w-]+)"
        self.routes = (
            Route("POST", r"/v1/files", self._upload, fails=True),
            Route("GET", r"/v1/files/(?P<name>[\w-]+)/content", self._content, fails=True),
            Route("POST", r"/v1/batches", self._create, fails=True),
            Route("GET", r"/v1/batches", self._list, fails=True),
            Route("GET", of, self._look, fails=True),
            Route("POST", rf"{of}/cancel", self._cancel, fails=True),
        )

    def _chat(self, body: bytes) -> Response:
        return self._openai.answer(Request("POST", _CHAT, {}, body))

    # -- files -----------------------------------------------------------------------------

    def _upload(self, request: Request) -> Response:
        parts = dict(_parts(request))
        if parts.get("purpose") != b"batch" or "file" not in parts:
            raise Rejected(400, "expected a form with a file and the purpose 'batch'")
        name = self._store(parts["file"])
        return Response(200, self._about(name))

    def _content(self, request: Request, name: str) -> Response:
        if name not in self._files:
            raise Rejected(404, f"No such File object: {name}")
        return Response(200, self._files[name])

    def _store(self, data: bytes) -> str:
        if sum(map(len, self._files.values())) + len(data) > _MAX_STORED:
            raise Rejected(413, f"files of more than {_MAX_STORED} bytes together")
        name = f"file-{secrets.token_hex(12)}"
        self._files[name] = data
        return name

    def _about(self, name: str) -> dict[str, Any]:
        about = {"id": name, "object": "file", "bytes": len(self._files[name])}
        told = {"created_at": int(time.time()), "filename": "batch.jsonl", "status": "processed"}
        return {**about, **told, "purpose": "batch"}

    # -- batches ---------------------------------------------------------------------------

    def _create(self, request: Request) -> Response:
        asked = request.json()
        name = asked.get("input_file_id")
        if not isinstance(name, str) or name not in self._files:
            raise Rejected(400, f"No such File object: {name}", param="input_file_id")
        if asked.get("endpoint") != _CHAT or asked.get("completion_window") != "24h":
            raise Rejected(400, f"expected the endpoint {_CHAT} and the window 24h")
        fate = self._fate(b"batch " + self._files[name])
        batch = _Batch(
            f"batch_{secrets.token_hex(12)}",
            name,
            int(time.time()),
            time.monotonic(),
            fate.delay,
            asked.get("metadata"),
        )
        try:
            batch.requests = dict(_lines(self._files.pop(name)))
        except Rejected as rejected:
            batch.errors = [rejected.message]
        if fate.fault == "broken":
            batch.errors = ["The server had an error while it validated the batch."]
        batch.status = "failed" if batch.errors else "in_progress"
        self._batches[batch.id] = batch
        self._statistics.batches += 1
        return Response(200, batch.as_dict())

    def _list(self, request: Request) -> Response:
        newest = list(reversed(self._batches.values()))
        names = [batch.id for batch in newest]
        after = request.query.get("after")
        start = names.index(after) + 1 if after in names else 0
        limit = request.query.get("limit", "20")
        most = min(100, int(limit)) if limit.isdecimal() and len(limit) < 5 else 20
        shown = [self._now(batch).as_dict() for batch in newest[start : start + most]]
        more = len(newest) > start + most
        return Response(200, {"object": "list", "data": shown, "has_more": more})

    def _look(self, request: Request, name: str) -> Response:
        return Response(200, self._now(self._batch(name)).as_dict())

    def _cancel(self, request: Request, name: str) -> Response:
        batch = self._now(self._batch(name))
        if batch.status == "in_progress":
            done = (time.monotonic() - batch.began) / max(batch.seconds, 1e-9)
            self._answer(batch, int(done * len(batch.requests)), "batch_cancelled")
            batch.status = "cancelled"
        return Response(200, batch.as_dict())

    def _batch(self, name: str) -> _Batch:
        if name not in self._batches:
            raise Rejected(404, f"No batch found with id '{name}'.")
        return self._batches[name]

    def _now(self, batch: _Batch) -> _Batch:
        """The batch as it stands by now."""
        due = time.monotonic() - batch.began >= batch.seconds
        if batch.status == "in_progress" and due:
            expired = self._answer(batch, len(batch.requests), "batch_expired")
            batch.status = "expired" if expired else "completed"
        return batch

    def _answer(self, batch: _Batch, many: int, code: str) -> bool:
        """Answers the first ``many`` requests; the others end with ``code``, and whether any of
        the first hung."""
        output: list[dict[str, Any]] = []
        failures: list[dict[str, Any]] = []
        hung = False
        for place, (name, body) in enumerate(batch.requests.items()):
            fault, response = self._work.answered(body) if place < many else ("hung", None)
            hung = hung or (fault == "hung" and place < many)
            line = {"id": f"batch_req_{place}", "custom_id": name, "response": None, "error": None}
            if response is None:
                failures.append({**line, "error": {"code": code, "message": "It was not done."}})
                continue
            reply = {"status_code": response.status, "body": response.content, "request_id": "demo"}
            if fault != "truncated":
                kept = output if response.usage is not None else failures
                kept.append({**line, "response": reply})
        batch.output = self._store(jsonl(output)) if output else None
        batch.failures = self._store(jsonl(failures)) if failures else None
        batch.counts = {"completed": len(output), "failed": len(failures)}
        return hung


def _lines(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Custom id and body of each request in a file; raises Rejected for what is none."""
    seen: set[str] = set()
    for number, line in enumerate(data.splitlines(), 1):
        said = Request("POST", _CHAT, {}, line).json()
        name, body = said.get("custom_id"), said.get("body")
        if not (isinstance(name, str) and isinstance(body, Mapping)) or name in seen:
            raise Rejected(400, f"line {number}: expected a custom_id of its own, and a body")
        if (said.get("method"), said.get("url")) != ("POST", _CHAT):
            raise Rejected(400, f"line {number}: expected POST {_CHAT}")
        seen.add(name)
        yield name, json.dumps(body).encode()


def _parts(request: Request) -> Iterator[tuple[str, bytes]]:
    """Names and contents of a form's parts (RFC 7578)."""
    found = _BOUNDARY.match(request.headers.get("content-type", ""))
    if found is None:
        raise Rejected(400, "expected a multipart form")
    for part in request.body.split(b"--" + found[1].encode("latin-1")):
        head, blank, content = part.partition(b"\r\n\r\n")
        name = _NAME.search(head)
        if blank and name:
            yield name[1].decode("latin-1"), content.removesuffix(b"\r\n")
