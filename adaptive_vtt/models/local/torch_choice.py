"""Which network of which torch library an audit is about, and how images reach it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ...errors import InputError, one_line, unknown
from ...types import Image
from ...utils.extras import pip_install
from ...utils.other_code import place_of
from .parameters import load_parameters
from .presets import IMAGENET, Preset

if TYPE_CHECKING:
    import torch

Source = Literal["timm", "torchvision", "segmentation-models", "hub", "monai"]
"""Where a network comes from; "hub" is a folder with a hubconf.py, "monai" a bundle's folder."""
T = TypeVar("T")


@dataclass(frozen=True)
class Chosen:
    """Which network: what a ``[model]`` section says of it.

    ``architecture``: its name in the library, or of the function in hubconf.py. ``path``: a folder:
    of the hub, of a bundle, or one that timm's ``save_for_hf`` or segmentation-models'
    ``save_pretrained`` wrote. ``weights``: the file with its parameters. ``options``: further
    arguments of what makes it. ``classes``: names of its outputs, in their order. ``preset``: whose
    preprocessing is meant, see each source. ``preprocessing``: fields of ``Preset`` that are known.
    """

    source: Source
    architecture: str | None
    path: Path | None
    weights: Path | None
    options: Mapping[str, Any]
    classes: Sequence[str] | None
    preset: str | None
    preprocessing: Mapping[str, Any]

    @property
    def who(self) -> str:
        """For messages."""
        return f"model {self.source} {self.architecture or self.path}"

    @property
    def channels(self) -> int:
        """Of its input, as the options say."""
        return int(self.options.get("in_chans", self.options.get("in_channels", 3)))

    def folder(self) -> Path:
        """The folder; raises InputError where there is none."""
        if self.path is None or not self.path.is_dir():
            got = "no path" if self.path is None else f"{str(self.path)!r}, which is none"
            raise InputError(
                f"model.path: expected a folder, for source = {self.source!r}, got {got}"
            )
        return self.path

    def named(self) -> str:
        """The architecture; raises InputError where there is none."""
        if self.architecture is None:
            raise InputError(
                f"model.architecture: expected a name, for source = {self.source!r}, got none"
            )
        return self.architecture

    def scaled(self, **known: Any) -> Preset:
        """The preset of what is known, but for what the section says otherwise; another size is not
        cut unless ``crop`` says so."""
        without = {"crop": None} if "size" in self.preprocessing else {}
        return Preset(**{**known, **without, **self.preprocessing})

    def by_hand(self, **also: Any) -> Preset:
        """The preset where the library knows none: ImageNet's numbers, or those that are given."""
        if self.preset not in (None, "imagenet"):
            raise unknown("preset", self.preset, ["imagenet"], "model.preset")
        if self.preset is None and not {"mean", "std"} <= self.preprocessing.keys():
            raise InputError(
                f"{self.who}: expected mean and std, which {self.source} does not know, got "
                "neither or one; preset = 'imagenet' where it was trained with ImageNet's, "
                "mean = [0], std = [1] where it takes pixels in 0..1"
            )
        mean, std = IMAGENET
        return self.scaled(mean=mean, std=std, channels=self.channels, **also)

    def made(self, make: Callable[[], T]) -> T:
        """What ``make`` makes; raises InputError where other people's code in it fails."""
        try:
            return make()
        except InputError:
            raise
        except (Exception, SystemExit) as error:
            raise InputError(
                f"{self.who}: cannot be made: {type(error).__name__}: "
                f"{one_line(error)[:200]}{place_of(error)}"
            ) from error

    def filled(self, module: "torch.nn.Module") -> "torch.nn.Module":
        """The network with the parameters of the file; raises InputError where none is named."""
        if self.weights is None:
            raise InputError(
                f"{self.who}: expected weights, the file with its parameters, got none; nothing is "
                "fetched, and a network without is random"
            )
        load_parameters(module, self.weights)
        return module

    def count(self, argument: str) -> dict[str, Any]:
        """The number of classes as an argument, where they are named."""
        return {} if self.classes is None else {argument: len(self.classes)}


@dataclass(frozen=True)
class Loaded:
    """A network, what makes its input of an image, and the names of its outputs, if known."""

    module: "torch.nn.Module"
    prepare: Callable[[Image], "torch.Tensor"]
    classes: Sequence[str] | None


def library(name: str, extra: str) -> Any:
    """A library that is an extra; raises InputError with the pip command where it is missing."""
    try:
        return import_module(name)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != name.partition(".")[0]:
            raise InputError(f"{name} cannot be imported: {one_line(error)[:200]}") from None
        raise InputError(f"source = {extra!r} needs {name}: {pip_install(extra)}") from None
    except RuntimeError as error:  # torchvision built for another torch
        raise InputError(
            f"{name} cannot be imported: {one_line(error)[:200]}; torchvision must be the build "
            "that belongs to this torch, CPU or CUDA alike"
        ) from None
