"""The [regions] section of a SPEC.toml: parts of images as samples, in place of whole images."""

from typing import Literal

from pydantic import Field

from ..datasets import Dataset
from ..datasets.regions import grid_regions, object_regions
from ..errors import InputError
from .section import Section


class RegionsSpec(Section):
    """Where each image is cut: on a grid, or around what is annotated."""

    grid: list[int] | None = Field(
        None, description="rows and columns, such as [4, 4]", min_length=2, max_length=2
    )
    around: Literal["objects"] | None = Field(
        None, description="instead: a region around each box and each piece of a mask"
    )
    margin: float | None = Field(
        None, description="with around: share of its size added on each side (0.25)", ge=0
    )
    least_side: int | None = Field(
        None, description="with around: regions are no smaller, in pixels (32)", ge=1
    )
    least: float | None = Field(
        None,
        description="what covers less of a region than this share is unknown there (0)",
        ge=0,
        le=1,
    )

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
