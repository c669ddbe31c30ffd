"""Random delays and faults of a server, by seed, and its statistics."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from adaptive_vtt.utils.random_streams import generator

from .http import Usage

Fault = Literal["limited", "broken", "hung", "truncated"]

FAULTS: tuple[Fault, ...] = ("limited", "broken", "hung", "truncated")

_BROKEN = (500, 502, 503, 504)


@dataclass(frozen=True)
class Faults:
    """The fault of one request, the status if it is "broken", and the delay in seconds."""

    fault: Fault | None
    status: int
    delay: float


@dataclass(frozen=True)
class Behaviour:
    """Speed and reliability of a server.

    Delays and faults depend on the seed, the request's body and the number of earlier requests with
    the same body, and not on the order and the timing of concurrent calls. Shares of requests are
    in 0..1 and sum to at most 1.

    Attributes:
        latency: Median seconds until an answer.
        spread: Standard deviation of its logarithm (0: always the same).
        limited: Share that is refused with 429.
        broken: Share that fails with 500, 502, 503 or 504.
        hung: Share that is never answered.
        truncated: Share that is answered and billed, with the connection cut within the body.
        retry_after: Seconds of the header Retry-After of 429.
        seed: Seed of delays and faults.
    """

    latency: float = 0.0
    spread: float = 0.0
    limited: float = 0.0
    broken: float = 0.0
    hung: float = 0.0
    truncated: float = 0.0
    retry_after: float = 1.0
    seed: int = 0

    def faults(self, digest: bytes, times: int) -> Faults:
        """Return the faults of a request; ``times`` counts earlier requests with its digest."""
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
    """A server's own counts of requests since its start.

    Every request is ``answered``, ``rejected`` (4xx that retrying does not help), ``lost``
    (answered after the client was gone), or has one of the four faults. Billed tokens are those of
    answered requests, and separately ("unseen") those of truncated and lost ones. ``most_at_once``
    is the largest number of requests in work at the same time.
    """

    requests: int = 0
    answered: int = 0
    rejected: int = 0
    limited: int = 0
    broken: int = 0
    hung: int = 0
    truncated: int = 0
    lost: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unseen_prompt_tokens: int = 0
    unseen_completion_tokens: int = 0
    most_at_once: int = 0

    def fail(self, fault: Fault | Literal["lost"]) -> None:
        """Count a request that was not answered."""
        setattr(self, fault, getattr(self, fault) + 1)

    def bill(self, usage: Usage, unseen: Fault | Literal["lost"] | None = None) -> None:
        """Count an answered request; ``unseen`` is the reason why no client receives the answer."""
        if unseen is not None:
            self.fail(unseen)
            self.unseen_prompt_tokens += usage.prompt_tokens
            self.unseen_completion_tokens += usage.completion_tokens
            return
        self.answered += 1
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
