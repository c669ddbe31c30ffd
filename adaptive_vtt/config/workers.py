"""Fields of models that may be held by several workers, and how such a model is made."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from ..errors import InputError
from ..models import ModelUnderTest
from .section import Section

ASIDE = ("actors", "in_flight", "worker_batch")
"""Fields that say something only beside ``workers``."""
NOT_HERE = (
    "; workers hold models that compute here (python, onnx, subprocess, torch, transformers, your "
    "own); an endpoint answers in_flight calls at a time by itself"
)
"""What to say where a kind has no workers."""


class Worked(Section):
    """What kinds have whose models compute where they run."""

    workers: int | str | None = Field(
        None,
        description="how many processes hold the model; or 'ray', or 'ray://HOST:PORT', for actors "
        "of a Ray cluster (none: the model is held by the audit itself)",
    )
    actors: int | None = Field(
        None,
        description="on Ray: how many (one per GPU of the cluster, or per CPU where it has none)",
        ge=1,
    )
    in_flight: int | None = Field(
        None,
        description="with workers: calls that are on their way or wait for a worker (8, or two "
        "batches per worker, if that is more)",
        ge=1,
    )
    worker_batch: int | None = Field(
        None, description="with workers: prompts that a worker takes at a time (1)", ge=1
    )

    def refuse_workers(self, where: str) -> None:
        """Raises InputError where a field speaks of workers."""
        if given := [name for name in ("workers", *ASIDE) if getattr(self, name) is not None]:
            raise InputError(
                f"{where}.{given[0]}: expected a model that the audit holds itself, got "
                f"{getattr(self, given[0])!r}; leave it out"
            )

    def unworked(self) -> "Worked":
        """The section without workers, of the model that each of them holds."""
        return self.model_copy(update=dict.fromkeys(("workers", *ASIDE)))

    def worked(self, base: Path) -> ModelUnderTest | None:
        """The model held by the workers that are asked for; None where none are."""
        if self.workers is None:
            if given := [name for name in ASIDE if getattr(self, name) is not None]:
                raise InputError(
                    f"model.{given[0]}: expected it beside model.workers, got it alone; say "
                    "workers = 2, or leave it out"
                )
            return None
        from ..models.workers.model import Workers

        return Workers(
            partial(_made, self.unworked(), base.resolve()),
            self.workers,
            actors=self.actors,
            in_flight=self.in_flight,
            batch=self.worker_batch or 1,
        )


def _made(section: Any, base: Path) -> Any:
    """The model of a section; runs in the worker."""
    build: Callable[..., Any] = section.build
    return build(base, None, captions=False)  # no kind that computes looks at the dataset
