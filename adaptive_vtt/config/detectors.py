"""The [detector] section of a SPEC.toml."""

from pathlib import Path

from pydantic import SerializeAsAny

from ..oracles.captions import DETECTORS
from ..oracles.captions.detectors import Described
from .section import Kinds, PlugIn


class DetectorSection(Kinds):
    """What finds things in images; without it, annotated boxes if there are any."""

    registry = DETECTORS
    default = "onnx"

    def build(self, base: Path) -> Described:
        """The detector; relative paths start at ``base``."""
        found: Described = self.made(base)
        return found


class PlugInBoxes(PlugIn, DetectorSection):
    """A detector of a package or file of your own."""

    def build(self, base: Path) -> Described:
        """The detector; its code is imported."""
        found: Described = DETECTORS.make(self.kind, self.options, base)
        DETECTORS.checked(found, self.kind)
        return found


DetectorSection.plug_in = PlugInBoxes
DetectorSpec = SerializeAsAny[DetectorSection]
