"""What models behind a network must not forget: the batches they sent, the ways they found, and the
calls that never came back."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

Why = Literal["refused", "missing"]
"""Why a way to P(yes) did not work: the server refused it, or passed over it in silence."""


class Fact(BaseModel):
    """What facts have in common; unknown ones are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class BatchFacts(Fact):
    """Calls that were submitted together to a provider's batch service.

    ``key``: what the batch is marked with there; ``id``: what the provider calls it, None while
    it is not known whether it arrived; ``calls``: their numbers; ``form``: how they were worded;
    ``at``: when, in seconds since 1970; ``lost``: nobody can tell whether it arrived, so that it
    counts as billed at its worst price.
    """

    key: str
    id: str | None = None
    calls: tuple[int, ...]
    form: str = ""
    at: int
    lost: bool = False


class WayFacts(Fact):
    """Where P(yes) comes from: ``yes_from``; what was tried ``instead`` of it before, in vain, and
    why; ``partly``: some replies did not have it, and were read as words."""

    yes_from: str
    instead: dict[str, Why] = {}
    partly: bool = False


class LostFacts(Fact):
    """Calls that were sent, or may have been, and never came back.

    ``interrupted``: how many. Each is sent again and may then be paid for twice, so a cap on cost
    counts it at its worst price, ``worst``. ``counted``: those of them that are not sent again yet,
    so that a second interruption does not count them twice. ``judge_...``: the same of a judge's
    calls.
    """

    interrupted: int = 0
    counted: tuple[int, ...] = ()
    worst: float = 0.0
    judge_interrupted: int = 0
    judge_counted: tuple[int, ...] = ()
    judge_worst: float = 0.0

    @property
    def cost(self) -> float:
        """What they may have cost, at most."""
        return self.interrupted * self.worst + self.judge_interrupted * self.judge_worst
