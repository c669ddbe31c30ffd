"""What the [model] sections of a SPEC.toml have in common."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from ..datasets import Dataset
from ..models import ModelUnderTest
from .section import Section

OUTPUT = (
    "what the numbers are; of logits a sigmoid is taken, or, where an oracle goes by the likeliest "
    "class, a softmax (default: probabilities of callables, logits of torch modules)"
)


class ModelSection(Section):
    """What every kind has."""

    costs_money: ClassVar[bool] = False
    """Whether every call of such a model may cost money, whatever prices are given."""

    kind: Any
    name: str | None = Field(None, description="what the report calls the model")
    version: str | None = Field(
        None,
        description="of the model (default: a hash of its file): a changed model is another one; "
        "open-inference: the version to ask for",
    )
    seed: int = Field(
        0, description="simulated, captioner, calls over a network: same seed, same model"
    )

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        """The model; relative paths start at ``base``. ``captions``: whether answers are."""
        raise TypeError(f"{type(self).__name__} defines no build")

    def file(self) -> str | None:
        """The file that holds the model, by which its version is told; None where none does."""
        return None

    def own(self, *apart: str) -> dict[str, Any]:
        """The fields that are set, without those that every kind has and those named."""
        return self.given(*ModelSection.model_fields, *apart)

    def named(self) -> dict[str, Any]:
        """The name as an argument, where there is one."""
        return {} if self.name is None else {"name": self.name}


class Tensors(Section):
    output: str | None = Field(None, description="the output to read")
    concepts: list[str] | None = Field(
        None, description="what the output's columns are (dataset's order)"
    )
    activation: Literal["none", "sigmoid", "softmax"] | None = Field(
        None, description="what makes P(yes) of the output (none)"
    )
    mean: list[float] | None = Field(None, description="of pixels in 0..1")
    std: list[float] | None = Field(None, description="of pixels in 0..1")


def renamed(given: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The fields as arguments of a class, which calls some of them otherwise."""
    return {names.get(name, name): value for name, value in given.items()}
