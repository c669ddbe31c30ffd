"""A batch service like OpenAI's, on loopback, whose requests are answered by a function."""

import json
from collections.abc import Mapping
from typing import Any

from tests.helpers.loopback import Answering, RawResponse


class BatchService:
    """Files and batches, which are done at once, for ``loopback.serving``.

    Args:
        chat: Function that answers each request of a batch.

    Attributes:
        instead: Beginning of "METHOD path" -> a response in place of the usual one.
    """

    def __init__(self, chat: Answering) -> None:
        self._chat = chat
        self.instead: dict[str, RawResponse] = {}
        self.files: dict[str, bytes] = {}
        self.batches: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []

    def __call__(self, path: str, headers: Mapping[str, str], body: bytes) -> RawResponse:
        request = f"{'POST' if body else 'GET'} {path}"
        for start, response in self.instead.items():
            if request.startswith(start):
                return response
        if request == "POST /v1/files":
            file = self.store(body.split(b"\r\n\r\n")[2].rpartition(b"\r\n--")[0] + b"\n")
            return self.reply({"id": file, "object": "file"})
        if request == "POST /v1/batches":
            return self.reply(self.create(json.loads(body)))
        name = path.partition("?")[0].split("/")[3:]
        if not name:
            return self.reply({"data": self.batches[::-1], "has_more": False})
        if path.endswith("/content"):
            return 200, {}, self.files[name[0]]
        return self.reply(next(batch for batch in self.batches if batch["id"] == name[0]))

    def reply(self, content: Any) -> RawResponse:
        return 200, {}, json.dumps(content).encode()

    def store(self, data: bytes) -> str:
        self.files[f"file-{len(self.files)}"] = data
        return f"file-{len(self.files) - 1}"

    def create(self, asked: dict[str, Any]) -> dict[str, Any]:
        lines = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
        done = {200: b"", 400: b""}
        for line in lines:
            self.requests.append(line["body"])
            reply = self._chat(line["url"], {}, json.dumps(line["body"]).encode())
            assert not isinstance(reply, str)
            status, _, body = reply
            response = {"status_code": status, "body": json.loads(body)}
            result = {"custom_id": line["custom_id"], "response": response, "error": None}
            done[200 if status == 200 else 400] += json.dumps(result).encode() + b"\n"
        batch = {
            "id": f"batch_{len(self.batches)}",
            "status": "completed",
            "created_at": 2_000_000_000,
            "output_file_id": self.store(done[200]) if done[200] else None,
            "error_file_id": self.store(done[400]) if done[400] else None,
            "metadata": asked["metadata"],
        }
        self.batches.append(batch)
        return batch
