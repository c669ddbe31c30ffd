"""The [dataset] section of a SPEC.toml."""

from pathlib import Path

from pydantic import SerializeAsAny

from ..datasets import REGISTRY, Dataset
from .section import Kinds, PlugIn


class DatasetSection(Kinds):
    """The images and their labels."""

    registry = REGISTRY
    default = "table"

    def build(self, base: Path) -> Dataset:
        """The dataset; relative paths start at ``base``."""
        found: Dataset = self.made(base)
        return found


class PlugInData(PlugIn, DatasetSection):
    """A dataset of a package or file of your own."""

    def build(self, base: Path) -> Dataset:
        """The dataset; its code is imported."""
        found: Dataset = REGISTRY.make(self.kind, self.options, base)
        REGISTRY.checked(found, self.kind)
        return found


DatasetSection.plug_in = PlugInData
DatasetSpec = SerializeAsAny[DatasetSection]
