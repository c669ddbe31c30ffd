"""When a server misbehaves, and how, by chance, but by seed; and what it bills."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from adaptive_vtt.errors import InputError
from adaptive_vtt.utils.http_server import Rejected, Request
from adaptive_vtt.utils.random_streams import generator

from .http import Response, Usage

Fault = Literal["limited", "broken", "hung", "truncated"]

FAULTS: tuple[Fault, ...] = ("limited", "broken", "hung", "truncated")

_BROKEN = (500, 502, 503, 504)


@dataclass(frozen=True)
class Faults:
    """What happens to one request. ``status``: that of "broken"; ``delay`` in seconds."""

    fault: Fault | None
    status: int
    delay: float


@dataclass(frozen=True)
class Behaviour:
    """How fast and how reliably a server answers.

    ``latency``: seconds until an answer, at the median; ``spread``: the standard deviation
    of its logarithm (0: always the same). ``limited``: the share of requests turned away
    with 429 and a Retry-After of ``retry_after`` seconds; ``broken``: with 500, 502, 503 or
    504; ``hung``: never answered; ``truncated``: answered and billed, but the connection is
    cut in the middle of the body. Shares are in 0..1 and sum to at most 1. ``at_once``: requests
    beyond so many in work at the same time get 429, too; 0: there may be any number.

    What happens depends on (seed, body of the request, how often this body came before),
    so that neither the order nor the timing of concurrent calls changes it. Raises
    InputError for a share or a time that is none.
    """

    latency: float = 0.0
    spread: float = 0.0
    limited: float = 0.0
    broken: float = 0.0
    hung: float = 0.0
    truncated: float = 0.0
    retry_after: float = 1.0
    at_once: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("latency", "spread", "retry_after", "at_once", *FAULTS):
            if not getattr(self, name) >= 0:
                raise InputError(
                    f"Behaviour: expected {name} of at least 0, got {getattr(self, name)}"
                )
        total = sum(getattr(self, fault) for fault in FAULTS)
        if total > 1 + 1e-9:
            raise InputError(f"Behaviour: expected faults that sum to at most 1, got {total:g}")

    def faults(self, digest: bytes, times: int) -> Faults:
        """The faults of a request whose body, of this digest, came ``times`` times before."""
        rng = generator(self.seed, f"demo fate/{digest.hex()}", times)
        chance, normal, status = rng.random(), rng.normal(), int(rng.choice(_BROKEN))
        delay = self.latency * float(np.exp(self.spread * normal))
        for fault in FAULTS:
            chance -= getattr(self, fault)
            if chance < 0:
                return Faults(fault, status, delay)
        return Faults(None, status, delay)


@dataclass
class Statistics:
    """What a server did, as it knows it itself; times and counts since it started.

    ``requests`` = ``answered`` + ``rejected`` (4xx that retrying does not help) + one of
    the four faults + ``lost`` (answered, but the client had gone) for every question;
    ``most_at_once``: requests in work at the same time. Tokens are those billed: of
    answered requests, and apart those of truncated and lost ones, which no client saw.
    ``batches``: how many were submitted; ``batched`` of the requests came in them.
    """

    requests: int = 0
    answered: int = 0
    rejected: int = 0
    limited: int = 0
    broken: int = 0
    hung: int = 0
    truncated: int = 0
    lost: int = 0
    refused: int = 0
    rambled: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unseen_prompt_tokens: int = 0
    unseen_completion_tokens: int = 0
    most_at_once: int = 0
    batches: int = 0
    batched: int = 0

    def fail(self, fault: Fault) -> None:
        """A request that was not answered."""
        setattr(self, fault, getattr(self, fault) + 1)

    def bill(self, usage: Usage, unseen: Fault | Literal["lost"] | None = None) -> None:
        """A request that was answered; ``unseen``: why no client sees the answer, which is billed
        all the same."""
        if unseen is not None:
            self.lost += unseen == "lost"
            self.truncated += unseen == "truncated"
            self.unseen_prompt_tokens += usage.prompt_tokens
            self.unseen_completion_tokens += usage.completion_tokens
            return
        self.answered += 1
        self.refused += usage.refused
        self.rambled += usage.rambled
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens

    def as_dict(self) -> dict[str, int]:
        """Name -> count."""
        return asdict(self)


@dataclass(kw_only=True)
class Batch:
    """``began``, on a monotonic clock, and ``seconds``: when work on it began, and how long it
    takes; ``requests`` by custom id; ``created``: in seconds since 1970."""

    id: str
    seconds: float
    requests: dict[str, bytes] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    created: float = field(default_factory=time.time)
    status: str = "in_progress"

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self.status == "in_progress"

    def as_dict(self) -> dict[str, object]:
        """As the API tells of it."""
        raise TypeError(f"{type(self).__name__} defines no as_dict")


AnyBatch = TypeVar("AnyBatch", bound=Batch)


class Batches(Generic[AnyBatch]):
    """Batches whose requests are answered one by one, once their time is over. A cancelled one has
    done as much as it had time for. Faults befall exchanges, too: one whose reply is lost was
    carried out.

    ``answer``: the reply to a request's body, whatever is wrong with it; ``error``: how the
    protocol words one that failed. By ``faults``, "limited" and "broken" ones fail, a "hung" one is
    never answered, and a "truncated" one is billed.
    """

    missing: ClassVar[str]
    """What is said of a batch that is not there, by its {name}."""

    def __init__(
        self,
        answer: Callable[[bytes], Response],
        error: Callable[[Rejected], Response],
        faults: Callable[[bytes], Faults],
        statistics: Statistics,
    ) -> None:
        self.error, self._answer = error, answer
        self._faults, self._statistics = faults, statistics
        self._batches: dict[str, AnyBatch] = {}

    def _end(self, batch: AnyBatch, many: int, *, cancelled: bool) -> None:
        """Answers the first ``many`` requests; the others were cancelled."""
        raise TypeError(f"{type(self).__name__} defines no _end")

    def _begin(self, batch: AnyBatch) -> Response:
        self._batches[batch.id] = batch
        self._statistics.batches += 1
        return Response(200, batch.as_dict())

    def _look(self, request: Request, name: str) -> Response:
        return Response(200, self._now(name).as_dict())

    def _cancel(self, request: Request, name: str) -> Response:
        batch = self._now(name)
        if batch.running:
            done = (time.monotonic() - batch.began) / max(batch.seconds, 1e-9)
            self._end(batch, int(done * len(batch.requests)), cancelled=True)
        return Response(200, batch.as_dict())

    def _now(self, name: str) -> AnyBatch:
        """The batch as it stands by now."""
        if name not in self._batches:
            raise Rejected(404, self.missing.format(name=name))
        batch = self._batches[name]
        if batch.running and time.monotonic() - batch.began >= batch.seconds:
            self._end(batch, len(batch.requests), cancelled=False)
        return batch

    def _page(self, request: Request, cursor: str, most: int) -> tuple[list[AnyBatch], bool]:
        """A page of batches, the newest first, and whether others follow: see ``newest``."""
        names, more = newest(self._batches, request.query, cursor, most)
        return [self._now(name) for name in names], more

    def _answered(self, body: bytes) -> tuple[Fault | None, Response | None]:
        """What befalls one request, and its reply, if there is one; on the bill."""
        counts, faults = self._statistics, self._faults(body)
        counts.requests += 1
        counts.batched += 1
        if faults.fault in ("limited", "broken", "hung"):
            counts.fail(faults.fault)
            status = 429 if faults.fault == "limited" else faults.status
            failed = Rejected(status, "It failed; try again.")
            return faults.fault, None if faults.fault == "hung" else self.error(failed)
        response = self._answer(body)
        if response.usage is None:
            counts.rejected += 1
        else:
            counts.bill(response.usage, faults.fault)
        return faults.fault, response


def newest(
    names: Iterable[str], query: Mapping[str, str], cursor: str, most: int
) -> tuple[list[str], bool]:
    """A page of ``names``, the last one first, and whether others follow.

    It begins after the name that the query's ``cursor`` says, and has as many as its "limit": 20
    where that is no number, and ``most`` at most.
    """
    backwards = [*names][::-1]
    after, limit = query.get(cursor), query.get("limit", "20")
    start = backwards.index(after) + 1 if after in backwards else 0
    stop = start + (min(most, int(limit)) if limit.isdecimal() and len(limit) < 5 else 20)
    return backwards[start:stop], len(backwards) > stop


def jsonl(lines: Iterable[Mapping[str, Any]]) -> bytes:
    """Lines of JSON."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
