"""The [model] section of a SPEC.toml: what all kinds have in common."""

from pathlib import Path
from typing import Any

from pydantic import Field

from ..datasets import Dataset
from ..models import REGISTRY, ModelUnderTest
from ..utils.options import arguments, parameters_of
from .environment import Filled
from .section import Kinds

OUTPUT = (
    "what the numbers are; of logits a sigmoid is taken, or, where an oracle goes by the likeliest "
    "class, a softmax (default: probabilities of callables, logits of torch modules)"
)


class ModelSection(Kinds):
    """The model under test."""

    registry = REGISTRY
    default = "python"

    name: str | None = Field(None, description="what the report calls the model")
    version: str | None = Field(
        None,
        description="of the model (default: a hash of its file): a changed model is another one; "
        "open-inference: the version to ask for",
    )
    seed: int = Field(
        0, description="simulated, captioner, calls over a network: same seed, same model"
    )

    @property
    def costs_money(self) -> bool:
        """Whether every call of such a model may cost money, whatever prices are given."""
        return "prices" in self._taken

    @property
    def _taken(self) -> set[str]:
        """The parameters of what makes the model; none are known of other people's code."""
        return set() if REGISTRY.is_code(self.kind) else parameters_of(REGISTRY.get(self.kind))

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        """The model; relative paths start at ``base``. ``captions``: whether answers are."""
        taken, made = self._taken, REGISTRY.get(self.kind)
        with Filled(self.values() if "keys" in taken else {}) as (filled, keys):
            options = arguments(made, {**self.values(), **filled}, base)
            own: dict[str, Any] = {"seed": self.seed, "version": self.version, "keys": keys or None}
            own |= {"directory": base, **self.named()}
            context = {n: value for n, value in own.items() if n in taken and value is not None}
            model: ModelUnderTest = made(**context, **options)
        return model

    def file(self) -> str | None:
        """The file that holds the model, by which its version is told; None where none does."""
        return None

    def named(self) -> dict[str, Any]:
        """The name as an argument, where there is one."""
        return {} if self.name is None else {"name": self.name}
