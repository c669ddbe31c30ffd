"""The [model] section of a SPEC.toml: one class per kind, and what it builds."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SerializeAsAny

from ..datasets import Dataset
from ..datasets.base import adapted_dataset
from ..errors import InputError
from ..models import REGISTRY, ModelUnderTest, adapted_model
from ..models.local.python import Output, as_model
from ..models.network.http_json import name_of_url
from .environment import Filled
from .model_section import OUTPUT, ModelSection
from .section import PlugIn
from .workers import Worked


class PythonSection(ModelSection, Worked):
    """A callable or torch module."""

    target: str = Field(
        description="'file.py:name' or 'package.module:name', a callable from a list of H x W x C "
        "uint8 images to an array n x C of P(yes), or of masks n x C x H x W, or of n captions"
    )
    output: Output | None = Field(None, description=OUTPUT)
    per_call: Literal["one", "all"] | None = Field(
        None, description="what --dry-run, which imports no model, takes a call to answer (all)"
    )

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        made = REGISTRY.get(self.kind)(self.target, base=base, output=self.output)
        return _agreed(self, made)

    def file(self) -> str | None:
        return self.target.rpartition(":")[0]


class PlugInSection(ModelSection, Worked, PlugIn):
    """A model of a package or file of your own."""

    kind: str = Field(description="its name; see 'avtt list models'")
    output: Output | None = Field(None, description=OUTPUT)
    per_call: Literal["one", "all"] | None = Field(
        None, description="what --dry-run, which imports no model, takes a call to answer (all)"
    )

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        with Filled({"options": self.options}) as (given, _):
            options, found = given["options"], REGISTRY.get(self.kind, base)
            if isinstance(found, type) or options:  # a function without options is the model
                found = REGISTRY.called(found, self.kind, options, base)
            return _agreed(self, as_model(found, self.kind, self.output))

    def file(self) -> str | None:
        return self.kind.rpartition(":")[0]


class RecordedSection(ModelSection):
    """A CSV of answers."""

    answers: str = Field(
        description="CSV with sample, relation, severity, one column per concept; of captions a "
        "CSV or JSON with the column caption"
    )

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        from ..models import RecordedCaptions
        from .recorded import recorded

        if captions:
            return RecordedCaptions.read(base / self.answers, self.name)
        return recorded(base / self.answers, self.name)

    def file(self) -> str | None:
        return self.answers


class SimulatedSection(ModelSection):
    """One of the paper's simulated models."""

    target: str = Field(description="unbiased, biased or negatively-biased")

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        return REGISTRY.get(self.kind).paper(self.target, dataset, seed=self.seed)


class CaptionerSection(ModelSection):
    """A captioner that describes drawn scenes and errs at rates that are set."""

    sight: Literal["colours", "masks"] | None = Field(
        None, description="sees drawn scenes by colours (default), phantoms by masks"
    )

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        """The captioner, over drawn scenes or, by their masks, over phantoms."""
        seen = {}
        if self.sight == "masks":
            from ..demo.registering import RegisteredSight
            from ..demo.scenery.vocabulary import ENDOSCOPY

            seen = {"sight": RegisteredSight(dataset), "vocabulary": ENDOSCOPY}
        made = self.made(base, seed=self.seed, **seen)
        made.name = self.name or made.name
        return adapted_model(made)


class OnnxSection(ModelSection, Worked):
    """A model in an ONNX file."""

    path: str

    def file(self) -> str | None:
        return self.path


class SubprocessSection(ModelSection, Worked):
    """A program that answers JSON lines."""

    command: str | list[str]


class LocalSection(ModelSection, Worked):
    """A model that computes where it runs."""


class TorchSection(LocalSection):
    """A network of a torch library or of a folder, on this machine."""

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        from ..models.local.torch_network import TorchNetwork

        model = super().build(base, dataset, captions=captions)
        assert isinstance(model, TorchNetwork)
        model.check_concepts(adapted_dataset(dataset).asked[0])
        return model


def _agreed(section: PythonSection | PlugInSection, model: ModelUnderTest) -> ModelUnderTest:
    """The model under the section's name; raises InputError where it answers otherwise than
    the section says."""
    model = adapted_model(model)
    if section.name is not None:
        model.name = section.name
    if section.per_call not in (None, model.answers):
        raise InputError(
            f"model.per_call: expected {model.answers!r}, as the model says, "
            f"got {section.per_call!r}"
        )
    return model


class HttpSection(ModelSection):
    """A server that takes and gives any JSON."""

    url: str

    def named(self) -> dict[str, Any]:
        return {"name": self.name or name_of_url(self.url)}  # as written, before keys are in it


ModelSection.special = {
    "python": PythonSection,
    "recorded": RecordedSection,
    "simulated": SimulatedSection,
    "http": HttpSection,
    "onnx": OnnxSection,
    "transformers": LocalSection,
    "torch": TorchSection,
    "subprocess": SubprocessSection,
    "captioner": CaptionerSection,
}
ModelSection.plug_in = PlugInSection
ModelSpec = SerializeAsAny[ModelSection]
