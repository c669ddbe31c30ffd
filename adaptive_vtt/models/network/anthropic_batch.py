"""Anthropic's message batches: messages in one body, and results as lines of JSON.

Documented at https://docs.anthropic.com/en/api/creating-message-batches. Batches carry no mark of
ours: one whose id was never heard is told by the names in its results, once it has ended.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...types import Prompt
from .anthropic_messages import WAYS, AnthropicProtocol, worded
from .attempts import Reply, Trouble
from .batches import GONE, MAX_FILE_BYTES, UNLISTED, Job, MaxFileBytes
from .chat import parted
from .chat_batch import NO_LIST, ChatBatch, known
from .exchanges import checked_id
from .prices import whole
from .wire import client_options

MAX_BYTES = 256_000_000
"""The longest batch that Anthropic takes."""
_BATCHES = "/v1/messages/batches"
_RAW = {"X-Stainless-Raw-Response": "raw"}
"""What makes the library give a reply as it came."""
_PAGE = 20
_HOUR = 3600  # seconds by which two clocks may differ
_ENDED = {"errored": "batch error", "canceled": "batch cancelled", "expired": "batch expired"}


class AnthropicBatch(AnthropicProtocol, ChatBatch):
    """A model behind Anthropic's messages, in batches, which cost less and take longer.

    The options are those of `AnthropicProtocol` and `BatchEndpoint`.
    ``max_file_bytes``: longer results are not read, and count as billed.
    """

    def __init__(
        self, model: str, *, max_file_bytes: MaxFileBytes = MAX_FILE_BYTES, **options: Any
    ) -> None:
        super().__init__(model, wire=client_options(max_file_bytes, "max_file_bytes"), **options)
        self._options, self._apart = parted(self._options)

    def worded(self, way: str, prompt: Prompt) -> dict[str, Any]:
        return worded(way, self.prepare(prompt), prompt)

    async def upload(self, requests: Mapping[str, Any]) -> list[dict[str, Any]]:
        listed = [{"custom_id": name, "params": params} for name, params in requests.items()]
        size = len(json.dumps({"requests": listed}))
        self._check_size(size, MAX_BYTES, requests)
        return listed

    async def create(self, key: str, uploaded: list[dict[str, Any]]) -> str:
        made = self._service.create(requests=uploaded, **self._apart)
        return checked_id((await self._said(made)).get("id"))

    async def find(self, key: str, since: int) -> str | None:
        """Raises Trouble, to be tried again, while a batch that may be the one is under way."""
        try:
            page = await self._said(self._service.list(limit=_PAGE, **self._apart))
        except Trouble as trouble:
            raise Trouble(UNLISTED) if trouble.kind in NO_LIST else trouble from None
        late = [one for one in page["data"] if _seconds(one["created_at"]) > since - _HOUR]
        unread = page.get("has_more") and len(late) == len(page["data"])
        for one in late:
            if one["processing_status"] != "ended":
                raise Trouble("batches under way", "one of them may be that of this audit")
            name = checked_id(one["id"])
            try:
                results = await self._results(name)
            except Trouble as trouble:
                if trouble.kind not in GONE:
                    raise
                unread = True
                continue
            if f'"{key}_'.encode() in results:
                return name
        if unread:  # it may be among those
            raise Trouble(UNLISTED)
        return None

    async def look(self, batch: str) -> Job:
        said = await self._said(self._service.retrieve(batch, **self._apart))
        status = said["processing_status"]
        if said["id"] != batch or status not in ("in_progress", "canceling", "ended"):
            raise ValueError(f"expected batch {batch!r} and its status, got {str(status)[:40]!r}")
        counts = said.get("request_counts")
        told = counts if isinstance(counts, dict) else {}
        done = sum(whole(told.get(name)) or 0 for name in ("succeeded", *_ENDED))
        # the address of the results is made here: requests carry the key
        return Job(status == "ended", done, (batch,) if status == "ended" else ())

    async def results(self, job: Job) -> list[bytes]:
        return [await self._results(name) for name in job.files]

    def read(self, result: Mapping[str, Any], prompt: Prompt, form: str) -> Reply:
        told = result["result"]
        if told["type"] in _ENDED:
            raise _undone(told["type"], told.get("error"))
        return self._reply(told["message"], prompt, known(form, WAYS))

    @property
    def _service(self) -> Any:
        return self._client.messages.batches.with_raw_response

    async def _results(self, name: str) -> bytes:
        headers = {**_RAW, **self._apart.get("extra_headers", {})}
        options = {"headers": headers, "params": self._apart.get("extra_query", {})}
        path = f"{_BATCHES}/{name}/results"
        return await self._body(self._client.get(path, cast_to=object, options=options))

    async def _body(self, exchange: Any) -> bytes:
        try:
            found = await super()._body(exchange)
        except Trouble as trouble:
            self._reached = self._reached or trouble.kind != "unreachable"
            raise
        self._reached = True
        return found


def _undone(kind: str, error: Any) -> Trouble:
    """A request that was not answered, and costs nothing."""
    inner = error.get("error") if isinstance(error, dict) else None
    told = inner if isinstance(inner, dict) else {}
    wrong = told.get("type") == "invalid_request_error"
    detail = f"{str(told.get('type'))[:60]}: {str(told.get('message'))[:200]}"
    if wrong:
        return Trouble("http 400", detail, then="leave", refused=True)
    return Trouble(_ENDED[kind], detail, refused=True)


def _seconds(moment: str) -> float:
    """Seconds since 1970 of a moment in RFC 3339."""
    return datetime.fromisoformat(moment).timestamp()
