"""The [model] section of a SPEC.toml: one class per kind, and what it builds."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from ..datasets import Dataset
from ..errors import InputError
from ..models import REGISTRY, ModelUnderTest, adapted_model
from ..models.local.loading import as_model
from ..models.local.python import Output
from .environment import Filled
from .model_section import OUTPUT, ModelSection, Tensors, renamed
from .network_models import (
    AnthropicBatchSection,
    AnthropicSection,
    HttpSection,
    InspectSection,
    OpenAIBatchSection,
    OpenAISection,
    OpenInferenceSection,
)
from .section import PLUG_IN, PlugIn, kind_of
from .torch_model import TorchSection
from .transformers_model import TransformersSection
from .workers import Worked


class PythonSection(ModelSection, Worked):
    """A callable or torch module."""

    kind: Literal["python"] = "python"
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

    kind: Literal["recorded"] = "recorded"
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

    kind: Literal["simulated"] = "simulated"
    target: str = Field(description="unbiased, biased or negatively-biased")

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        return REGISTRY.get(self.kind).paper(self.target, dataset, seed=self.seed)


class CaptionerSection(ModelSection):
    """A captioner that describes drawn scenes and errs at rates that are set."""

    kind: Literal["captioner"] = "captioner"
    omission: float | None = Field(None, description="share of things left out (0.1)", ge=0, le=1)
    misclassification: float | None = Field(
        None, description="share of things taken for others (0.05)", ge=0, le=1
    )
    fabrication: float | None = Field(
        None, description="share of captions that add a thing (0.03)", ge=0, le=1
    )
    sight: Literal["colours", "masks"] | None = Field(
        None, description="sees drawn scenes by colours (default), phantoms by masks"
    )
    price_per_call: float | None = Field(None, description="price of a call", ge=0)

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        """The captioner, over drawn scenes or, by their masks, over phantoms."""
        options = self.own("sight", "price_per_call")
        if self.sight == "masks":
            from ..datasets.synthetic.registering import RegisteredSight
            from ..datasets.synthetic.scenery.vocabulary import ENDOSCOPY

            options |= {"sight": RegisteredSight(dataset), "vocabulary": ENDOSCOPY}
        price = self.price_per_call or 0.0
        made = REGISTRY.get(self.kind)(price=price, seed=self.seed, **options)
        made.name = self.name or made.name
        return made


class OnnxSection(ModelSection, Worked, Tensors):
    """A model in an ONNX file."""

    kind: Literal["onnx"] = "onnx"
    path: str = Field(description="the file")
    batch_size: int | None = Field(None, description="images at a time (64)", ge=1)
    providers: list[str] | None = Field(None, description="ONNX Runtime's, in order")

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        return REGISTRY.get(self.kind)(path=base / self.path, **self.own("path"), **self.named())

    def file(self) -> str | None:
        return self.path


class SubprocessSection(ModelSection, Worked):
    """A program that answers JSON lines."""

    kind: Literal["subprocess"] = "subprocess"
    command: str | list[str] = Field(description="the program to start")
    per_call: Literal["one", "all"] | None = Field(
        None, description="questions that one call answers (all)"
    )
    timeout: float | None = Field(None, description="seconds that an answer may take (60)", gt=0)
    max_reply_bytes: int | None = Field(None, description="a longer line is malformed (8e6)", ge=1)

    takes_words: bool | None = Field(
        None, description='whether the program goes by "words", where to look (false)'
    )

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        given = renamed(self.own(), {"per_call": "answers"})
        return REGISTRY.get(self.kind)(directory=base, **given, **self.named())


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


ModelSpec = Annotated[
    Annotated[PythonSection, Tag("python")]
    | Annotated[RecordedSection, Tag("recorded")]
    | Annotated[SimulatedSection, Tag("simulated")]
    | Annotated[OpenAISection, Tag("openai")]
    | Annotated[OpenAIBatchSection, Tag("openai-batch")]
    | Annotated[AnthropicSection, Tag("anthropic")]
    | Annotated[AnthropicBatchSection, Tag("anthropic-batch")]
    | Annotated[InspectSection, Tag("inspect")]
    | Annotated[OpenInferenceSection, Tag("open-inference")]
    | Annotated[HttpSection, Tag("http")]
    | Annotated[OnnxSection, Tag("onnx")]
    | Annotated[TransformersSection, Tag("transformers")]
    | Annotated[TorchSection, Tag("torch")]
    | Annotated[SubprocessSection, Tag("subprocess")]
    | Annotated[CaptionerSection, Tag("captioner")]
    | Annotated[PlugInSection, Tag(PLUG_IN)],
    Discriminator(kind_of(REGISTRY, "python")),
]
"""The model under test."""
