"""The [dataset], [regions] and [detector] sections of a SPEC.toml."""

from pathlib import Path
from typing import Literal, cast

from pydantic import Field, SerializeAsAny

from ..datasets import REGISTRY, Dataset
from ..datasets.regions import grid_regions, object_regions
from ..errors import unexpected
from ..oracles.captions import DETECTORS, Detector
from ..utils.files import Table, read_toml
from .section import Kinds, Section, option
from .sentences import validated


class DatasetSection(Kinds):
    """The images and their labels."""

    registry = REGISTRY
    default = "table"

    def build(self, base: Path) -> Dataset:
        """Return the dataset; relative paths start at ``base``."""
        return cast("Dataset", self.made(base))


DatasetSpec = SerializeAsAny[DatasetSection]


class RegionsSpec(Section):
    """Where each image is cut: on a grid, or around what is annotated."""

    grid: list[int] | None = Field(
        None, description="rows and columns, such as [4, 4]", min_length=2, max_length=2
    )
    around: Literal["objects"] | None = Field(
        None, description="instead: a region around each box and each piece of a mask"
    )
    margin: float | None = option(object_regions, "margin", set_here=False)
    least_side: int | None = option(object_regions, "least_side", set_here=False)
    least: float | None = option(object_regions, "least", set_here=False)

    def build(self, dataset: Dataset) -> Dataset:
        """Return the regions of ``dataset``. Raise InputError for both cuts, or none."""
        if self.grid is None and self.around is None:
            expected = 'grid = [rows, columns] or around = "objects"'
            raise unexpected("regions", expected, "neither")
        if self.grid is None:
            return object_regions(dataset, **self.given("around"))
        if apart := self.given("grid", "least"):
            got, remedy = f"grid and {next(iter(apart))}", "margin and least_side go with around"
            raise unexpected("regions", "grid or around", got, remedy)
        return grid_regions(dataset, *self.grid, **self.given("grid"))


class DetectorSection(Kinds):
    """Detector of things in images; without it, annotated boxes if there are any."""

    registry = DETECTORS
    default = "onnx"

    def build(self, base: Path) -> Detector:
        """Return the detector; relative paths start at ``base``."""
        return cast("Detector", self.made(base))


DetectorSpec = SerializeAsAny[DetectorSection]


class _Alone(Section):
    dataset: DatasetSpec


def read_dataset(path: Path) -> Dataset:
    """Return the dataset of a TOML file, whose other sections are ignored. Raise InputError naming
    file and field."""
    spec = validated(_Alone, read_sections(path, "dataset"), str(path))
    return spec.dataset.build(path.parent)


def read_sections(path: Path, *names: str) -> Table:
    """Return the sections of these names in a TOML file. Raise InputError for other files."""
    table = read_toml(path, "a TOML file")
    return {name: table[name] for name in names if name in table}
