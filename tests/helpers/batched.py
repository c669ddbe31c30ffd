"""A provider of batches in memory, and a client that may die at any exchange with it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adaptive_vtt.models import OpenAIBatch, Prices, Retries, Unanswered
from adaptive_vtt.models.network.attempts import Reply, Trouble
from adaptive_vtt.models.network.batches import UNLISTED, Job
from adaptive_vtt.testing import ScriptedModel
from adaptive_vtt.types import Answer, Prompt

PRICE, WORST = 0.5, 1.0
"""Price of an answered call, and the highest price of an attempt."""
Line = dict[str, Any]
Tampering = Callable[[list[Line]], list[Line] | bytes]
"""Function of the lines of a batch's results, each with a custom_id -> the response instead."""


class Struck(BaseException):
    """The client died."""


@dataclass
class Provider:
    """Provider whose batches outlive its clients.

    Attributes:
        listed: Whether it lists its batches.
        looks: Number of looks after which a batch is done.
        tamper: Change of results.
        refused: Number of batches that are refused.
        strike: Exchange at which the client dies, counted from 1: K after it is done, K - 0.5
            before.
    """

    listed: bool = True
    looks: int = 1
    tamper: Tampering = lambda lines: lines
    refused: int = 0
    strike: float = 0.0
    exchanges: int = 0
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def exchange(self, what: str, doing: Callable[[], Any]) -> Any:
        self.exchanges += 1
        if self.strike == self.exchanges - 0.5:
            raise Struck
        done = doing()
        self.said.append(what)
        if self.strike == self.exchanges:
            raise Struck
        return done

    def create(self, key: str, requests: Mapping[str, Any]) -> str:
        name = f"b{len(self.batches)}"
        self.batches[name] = {"key": key, "requests": dict(requests), "looks": 0}
        return name

    def find(self, key: str) -> str | None:
        return next((n for n, batch in self.batches.items() if batch["key"] == key), None)

    def look(self, name: str) -> Job:
        batch = self.batches[name]
        batch["looks"] += 1
        if len(self.batches) <= self.refused:
            return Job(True, refused="the file is no good")
        return Job(batch["looks"] >= self.looks, files=(name,))

    def results(self, name: str) -> list[bytes]:
        lines = [{"custom_id": n, "prompt": r} for n, r in self.batches[name]["requests"].items()]
        sent = self.tamper(lines)
        if isinstance(sent, bytes):
            return [sent]
        return [b"\n".join(json.dumps(line).encode() for line in sent)]

    @property
    def asked(self) -> list[str]:
        """All requests, also repeated ones."""
        return [json.dumps(r) for b in self.batches.values() for r in b["requests"].values()]


class Client(OpenAIBatch):
    """Client of the provider with the answers of a ``ScriptedModel``, for whom no time passes."""

    needs_image = False

    def __init__(self, provider: Provider, **options: Any) -> None:
        self.provider, self.slept = provider, 0.0
        self._rule = ScriptedModel(refuse=options.pop("refuse", 0.0))
        given = {
            "prices": Prices(input=2 * PRICE, output=2 * (WORST - PRICE), tokens=1),
            "max_input_tokens": 1,
            "max_tokens": 1,
            "retries": Retries(times=2, timeout=5.0),
            "batch_size": 8,
            "poll_seconds": 1.0,
            "sleep": self._pass,
            "now": lambda: self.slept,
            **options,
        }
        super().__init__("batched", base_url="http://memory/v1", **given)

    async def _pass(self, seconds: float) -> None:
        self.slept += seconds

    def request(self, prompt: Prompt, form: str) -> Any:
        return [prompt.sample_id, prompt.relation, prompt.severity, list(prompt.concepts)]

    async def upload(self, requests: Mapping[str, Any]) -> Any:
        return requests

    async def create(self, key: str, uploaded: Any) -> str:
        found: str = self.provider.exchange("create", lambda: self.provider.create(key, uploaded))
        return found

    async def find(self, key: str, since: int) -> str | None:
        if not self.provider.listed:
            raise Trouble(UNLISTED)
        found: str | None = self.provider.exchange("find", lambda: self.provider.find(key))
        return found

    async def look(self, batch: str) -> Job:
        found: Job = self.provider.exchange("look", lambda: self.provider.look(batch))
        return found

    async def results(self, job: Job) -> list[bytes]:
        found: list[bytes] = self.provider.exchange(
            "results", lambda: self.provider.results(job.files[0])
        )
        return found

    def read(self, result: Mapping[str, Any], prompt: Prompt, form: str) -> Reply:
        if "fails" in result:
            raise Trouble(**result["fails"])
        sent, answered = result.get("usage", (1, 0))
        usage = self.counted({"prompt_tokens": sent, "completion_tokens": answered})
        said = result.get("said") or self._rule.ask([prompt])[0]
        if isinstance(said, Answer):
            said = said.values
        return Reply(said if isinstance(said, Unanswered) else tuple(said), usage)
