"""A batch service as OpenAI has it, on loopback, around what answers one request."""

import json
from collections.abc import Mapping
from typing import Any

from tests.helpers.loopback import Answering, Said


class BatchService:
    """Answers as ``loopback.serving`` asks: files and batches, which are done at once.

    ``chat``: what each request is answered by. What a test puts into ``instead``, by the beginning
    of "METHOD path", is said in place of the service's own words.
    """

    def __init__(self, chat: Answering) -> None:
        self._chat = chat
        self.instead: dict[str, Said] = {}
        self.files: dict[str, bytes] = {}
        self.batches: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []

    def __call__(self, path: str, headers: Mapping[str, str], body: bytes) -> Said:
        asked = f"{'POST' if body else 'GET'} {path}"
        for start, said in self.instead.items():
            if asked.startswith(start):
                return said
        if asked == "POST /v1/files":
            found = self.store(body.split(b"\r\n\r\n")[2].rpartition(b"\r\n--")[0] + b"\n")
            return self.say({"id": found, "object": "file"})
        if asked == "POST /v1/batches":
            return self.say(self.create(json.loads(body)))
        name = path.partition("?")[0].split("/")[3:]
        if not name:
            return self.say({"data": self.batches[::-1], "has_more": False})
        if path.endswith("/content"):
            return 200, {}, self.files[name[0]]
        return self.say(next(batch for batch in self.batches if batch["id"] == name[0]))

    def say(self, told: Any) -> Said:
        return 200, {}, json.dumps(told).encode()

    def store(self, data: bytes) -> str:
        self.files[f"file-{len(self.files)}"] = data
        return f"file-{len(self.files) - 1}"

    def create(self, asked: dict[str, Any]) -> dict[str, Any]:
        lines = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
        done = {200: b"", 400: b""}
        for line in lines:
            self.requests.append(line["body"])
            said = self._chat(line["url"], {}, json.dumps(line["body"]).encode())
            assert not isinstance(said, str)
            status, _, body = said
            response = {"status_code": status, "body": json.loads(body)}
            told = {"custom_id": line["custom_id"], "response": response, "error": None}
            done[200 if status == 200 else 400] += json.dumps(told).encode() + b"\n"
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
