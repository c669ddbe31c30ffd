"""The [dataset], [regions] and [detector] sections of a SPEC.toml."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SerializeAsAny, ValidationError

from ..datasets import REGISTRY, Dataset
from ..datasets.regions import grid_regions, object_regions
from ..errors import InputError
from ..oracles.captions import DETECTORS, Detector
from ..utils.files import Table, read_toml
from .section import Kinds, Section, told
from .sentences import sentence


class DatasetSection(Kinds):
    """The images and their labels."""

    registry = REGISTRY
    default = "table"

    def build(self, base: Path) -> Dataset:
        """The dataset; relative paths start at ``base``."""
        found: Dataset = self.made(base)
        return found


DatasetSpec = SerializeAsAny[DatasetSection]


class RegionsSpec(Section):
    """Where each image is cut: on a grid, or around what is annotated."""

    grid: list[int] | None = Field(
        None, description="rows and columns, such as [4, 4]", min_length=2, max_length=2
    )
    around: Literal["objects"] | None = Field(
        None, description="instead: a region around each box and each piece of a mask"
    )
    margin: float | None = told(object_regions, "margin", set_here=False)
    least_side: int | None = told(object_regions, "least_side", set_here=False)
    least: float | None = told(object_regions, "least", set_here=False)

    def build(self, dataset: Dataset) -> Dataset:
        """The regions of ``dataset``; raises InputError for anything but one way to cut."""
        if self.grid is None and self.around is None:
            raise InputError(
                'regions: expected grid = [rows, columns] or around = "objects", got neither'
            )
        if self.grid is None:
            return object_regions(dataset, **self.given("around"))
        if apart := self.given("grid", "least"):
            raise InputError(
                f"regions: expected grid or around, got grid and {next(iter(apart))}; margin and "
                "least_side are for regions around objects"
            )
        return grid_regions(dataset, *self.grid, **self.given("grid"))


class DetectorSection(Kinds):
    """What finds things in images; without it, annotated boxes if there are any."""

    registry = DETECTORS
    default = "onnx"

    def build(self, base: Path) -> Detector:
        """The detector; relative paths start at ``base``."""
        found: Detector = self.made(base)
        return found


DetectorSpec = SerializeAsAny[DetectorSection]


class _Alone(Section):
    dataset: DatasetSpec


def read_dataset(path: Path) -> Dataset:
    """The dataset of a TOML file, whose other sections are not looked at.

    Raises InputError naming file and field.
    """
    table = read_sections(path, "dataset")
    try:
        spec = _Alone.model_validate(table)
    except ValidationError as error:
        raise sentence(error, str(path), _Alone, table) from None
    return spec.dataset.build(path.parent)


def read_sections(path: Path, *names: str) -> Table:
    """These sections of a TOML file. Raises InputError where it is none."""
    table = read_toml(path, "a TOML file")
    return {name: table[name] for name in names if name in table}
