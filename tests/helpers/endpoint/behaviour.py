"""When a server misbehaves, and how, by chance, but by seed; and what it bills."""

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
    cut in the middle of the body. Shares are in 0..1 and sum to at most 1.

    What happens depends on (seed, body of the request, how often this body came before),
    so that neither the order nor the timing of concurrent calls changes it.
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
        """A request that was not answered."""
        setattr(self, fault, getattr(self, fault) + 1)

    def bill(self, usage: Usage, unseen: Fault | Literal["lost"] | None = None) -> None:
        """A request that was answered; ``unseen``: why no client sees the answer, which is billed
        all the same."""
        if unseen is not None:
            self.fail(unseen)
            self.unseen_prompt_tokens += usage.prompt_tokens
            self.unseen_completion_tokens += usage.completion_tokens
            return
        self.answered += 1
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
