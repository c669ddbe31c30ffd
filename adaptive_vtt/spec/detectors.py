"""The [detector] section of a SPEC.toml: one class per kind, and what it builds."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from ..captions import DETECTORS
from ..captions.detectors import Described
from .section import PLUG_IN, PlugIn, Section, kind_of


class OnnxBoxes(Section):
    """A detector in an ONNX file."""

    kind: Literal["onnx"] = "onnx"
    path: str = Field(description="the file")
    labels: str = Field(description="text file of class names, one per line")
    layout: Literal["auto", "yolo", "ssd", "fastestdet"] | None = Field(
        None, description="how the outputs are laid out (auto)"
    )
    threshold: float | None = Field(
        None, description="boxes less sure than this are left out (0.5)", gt=0, le=1
    )
    overlap: float | None = Field(
        None, description="of boxes that overlap more one is kept (0.45)", gt=0, le=1
    )
    size: int | None = Field(None, description="side of the input (default: the file's)")

    def build(self, base: Path) -> Described:
        """The detector; relative paths start at ``base``."""
        options = self.given("path", "labels")
        return DETECTORS.get(self.kind)(base / self.path, labels=base / self.labels, **options)


class RegionBoxes(Section):
    """Parts that stand out, without names."""

    kind: Literal["regions"] = "regions"
    overlap: float | None = Field(
        None, description="of boxes that overlap more one is kept (0.6)", gt=0, le=1
    )
    most: int | None = Field(None, description="at most so many boxes (20)", ge=1)

    def build(self, base: Path) -> Described:
        """The detector."""
        return DETECTORS.get(self.kind)(**self.given())


class PlugInBoxes(PlugIn):
    """A detector of a package or file of your own."""

    def build(self, base: Path) -> Described:
        """The detector; its code is imported."""
        return DETECTORS.checked(DETECTORS.make(self.kind, self.options, base), self.kind)


DetectorSpec = Annotated[
    Annotated[OnnxBoxes, Tag("onnx")]
    | Annotated[RegionBoxes, Tag("regions")]
    | Annotated[PlugInBoxes, Tag(PLUG_IN)],
    Discriminator(kind_of(DETECTORS, "onnx")),
]
"""What finds things in images; without this section, annotated boxes if there are any."""
