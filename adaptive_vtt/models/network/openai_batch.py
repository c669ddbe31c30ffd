"""OpenAI's batch service: a file of requests, a batch made of it, and a file of results.

Documented at https://platform.openai.com/docs/guides/batch; servers that speak the protocol
(vLLM's and LiteLLM's proxies among them) differ in price, and in how long a batch may take.
"""

import json
from collections.abc import Awaitable, Mapping
from typing import Any

from ...types import Prompt
from .attempts import Reply, Trouble
from .batches import MAX_FILE_BYTES, UNLISTED, Job, MaxFileBytes
from .chat import WORDS, parted
from .chat_batch import NO_LIST, ChatBatch, known
from .chat_replies import in_words
from .exchanges import checked_id
from .openai_chat import WAYS, OpenAIProtocol, refused, worded
from .prices import whole
from .wire import client_options, lost_in, words_of

MARK = "adaptive_vtt"
"""The batch's metadata of this name is our key."""
MAX_BYTES = 200_000_000
"""The longest file of requests that OpenAI takes."""
_CHAT = "/v1/chat/completions"
_PAGE, _PAGES = 100, 50
_DAY = 86_400  # seconds by which two clocks may differ
_ENDED = ("completed", "expired", "cancelled")
_RUNNING = ("validating", "in_progress", "finalizing", "cancelling")


class OpenAIBatch(OpenAIProtocol, ChatBatch):
    """A model behind OpenAI's chat completions, in batches, which cost less and take longer.

    The options are those of `OpenAIProtocol` and `BatchEndpoint`.
    ``max_file_bytes``: a longer file of results is not read, and counts as billed.
    """

    def __init__(
        self, model: str, *, max_file_bytes: MaxFileBytes = MAX_FILE_BYTES, **options: Any
    ) -> None:
        super().__init__(model, wire=client_options(max_file_bytes, "max_file_bytes"), **options)
        self._options, self._apart = parted(self._options)

    def worded(self, way: str, prompt: Prompt) -> dict[str, Any]:
        return worded(way, self.prepare(prompt), prompt)

    async def upload(self, requests: Mapping[str, Any]) -> str:
        lines = (
            json.dumps({"custom_id": name, "method": "POST", "url": _CHAT, "body": body})
            for name, body in requests.items()
        )
        data = "\n".join(lines).encode()
        self._check_size(len(data), MAX_BYTES, requests)
        files = self._client.files.with_raw_response
        made = files.create(file=("batch.jsonl", data), purpose="batch", **self._apart)
        return checked_id((await self._said(made)).get("id"))

    async def create(self, key: str, uploaded: str) -> str:
        made = self._client.batches.with_raw_response.create(
            input_file_id=uploaded,
            endpoint=_CHAT,
            completion_window="24h",
            metadata={MARK: key},
            **self._apart,
        )
        return checked_id((await self._said(made)).get("id"))

    async def find(self, key: str, since: int) -> str | None:
        after: dict[str, str] = {}
        for _ in range(_PAGES):
            try:
                page = await self._said(
                    self._client.batches.with_raw_response.list(limit=_PAGE, **after, **self._apart)
                )
            except Trouble as trouble:
                raise Trouble(UNLISTED) if trouble.kind in NO_LIST else trouble from None
            found = [one for one in page["data"] if (one.get("metadata") or {}).get(MARK) == key]
            if found:
                return checked_id(found[0]["id"])
            if not (page["data"] and page.get("has_more")):
                return None
            if page["data"][-1]["created_at"] < since - _DAY:  # the newest come first
                return None
            after = {"after": checked_id(page["data"][-1]["id"])}
        raise Trouble(UNLISTED)

    async def look(self, batch: str) -> Job:
        said = await self._said(
            self._client.batches.with_raw_response.retrieve(batch, **self._apart)
        )
        status = said["status"]
        if said["id"] != batch or status not in (*_RUNNING, *_ENDED, "failed"):
            raise ValueError(f"expected batch {batch!r} and its status, got {str(status)[:40]!r}")
        if status == "failed":
            return Job(True, refused=_why(said.get("errors")))
        files = [said.get("output_file_id"), said.get("error_file_id")]
        if status not in _ENDED:
            return Job(False, _done(said.get("request_counts")))
        return Job(True, files=tuple(checked_id(file) for file in files if file))

    async def results(self, job: Job) -> list[bytes]:
        files = self._client.files.with_raw_response
        return [await self._body(files.content(file, **self._apart)) for file in job.files]

    def read(self, result: Mapping[str, Any], prompt: Prompt, form: str) -> Reply:
        response, error = result.get("response"), result.get("error")
        if not isinstance(response, dict):
            raise _undone(error)
        status, body = response["status_code"], response["body"]
        if status != 200:
            told = body.get("error") if isinstance(body, dict) else None
            code = told.get("code") if isinstance(told, dict) else None
            return self._refusal(status, code, json.dumps(body).encode(), {})
        way = known(form, WAYS)
        return self._reply(body, prompt, WORDS if in_words(prompt) else way)

    async def _body(self, exchange: Awaitable[Any]) -> bytes:
        import openai

        try:
            raw = await exchange
            self._reached = True
        except openai.APIStatusError as error:
            self._reached = True
            words, headers = words_of(error.response.content), error.response.headers
            raise refused(error.status_code, error.code, words, headers) from None
        except openai.APIConnectionError as error:
            raise lost_in(error) from None
        found: bytes = raw.http_response.content
        return found


def _done(counts: Any) -> int:
    """How many requests have ended, as far as the provider says."""
    told = counts if isinstance(counts, dict) else {}
    ended = [whole(told.get(name)) for name in ("completed", "failed")]
    return sum(count or 0 for count in ended)


def _why(errors: Any) -> str:
    """What the provider says of a batch that it refused."""
    listed = errors.get("data") if isinstance(errors, dict) else None
    first = listed[0] if isinstance(listed, list) and listed else None
    return str(first.get("message")) if isinstance(first, dict) else "no reason was given"


def _undone(error: Any) -> Trouble:
    """A request that was never answered: its batch expired or was cancelled, or it failed."""
    told = error if isinstance(error, dict) else {}
    code, words = str(told.get("code"))[:60], str(told.get("message"))[:200]
    kinds = {"batch_expired": "batch expired", "batch_cancelled": "batch cancelled"}
    return Trouble(kinds.get(code, "batch error"), f"{code}: {words}", refused=True)
