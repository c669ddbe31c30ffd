"""Networks of torch's libraries, and of folders, with the preprocessing that belongs to them.

Nothing is fetched: parameters come from a file or folder on this machine.
"""

import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import numpy as np

from ...errors import InputError, check_known, one_line, unknown
from ...types import Image
from ...utils.files import hash_file, write_bytes
from ...utils.image_codec import png
from ...utils.importing import pip_install
from ...utils.options import Group, Option, at_base
from ...utils.other_code import place_of
from .parameters import load_parameters
from .tensors import IMAGENET, Preset, told

if TYPE_CHECKING:
    import torch

Source = Literal["timm", "torchvision", "segmentation-models", "hub", "monai"]
"""Where a network comes from; "hub" is a folder with a hubconf.py, "monai" a bundle's folder."""
T = TypeVar("T")


@dataclass(frozen=True)
class Chosen:
    """Which network: what a ``[model]`` section says of it.

    ``preprocessing``: fields of ``Preset`` that are known.
    """

    source: Annotated[
        Source,
        Option("whose network it is; hub is a folder with a hubconf.py, monai a bundle's"),
    ]
    architecture: Annotated[
        str | None,
        Option("its name in the library (resnet50, unet), or of the function in hubconf.py"),
    ] = None
    path: Annotated[
        Path | None,
        Option(
            "hub, monai: the folder; timm, segmentation-models: one that save_for_hf or "
            "save_pretrained wrote, instead of architecture and weights",
            reads=at_base,
        ),
    ] = None
    weights: Annotated[
        Path | None,
        Option(
            "the file with its parameters, .safetensors or as torch.save writes a state_dict; "
            "nothing is fetched (monai: models/model.pt)",
            reads=at_base,
        ),
    ] = None
    options: Annotated[
        Mapping[str, Any],
        Option(
            "further arguments of what makes it, such as encoder_name; monai: changes of its "
            "configuration, by MONAI's ids"
        ),
    ] = field(default_factory=dict)
    classes: Annotated[
        Sequence[str] | None,
        Option("what its outputs are, in their order (default: as the library says)"),
    ] = None
    preset: Annotated[
        str | None,
        Option(
            "torchvision: the weights whose preprocessing and classes are meant (those it "
            "recommends); segmentation-models, hub: imagenet, for ImageNet's mean and std"
        ),
    ] = None
    preprocessing: Annotated[Mapping[str, Any], Group(told)] = field(default_factory=dict)

    @property
    def who(self) -> str:
        return f"model {self.source} {self.architecture or self.path}"

    @property
    def channels(self) -> int:
        """Of its input, as the options say."""
        return int(self.options.get("in_chans", self.options.get("in_channels", 3)))

    def folder(self) -> Path:
        if self.path is None or not self.path.is_dir():
            got = "no path" if self.path is None else f"{str(self.path)!r}, which is none"
            raise InputError(
                f"model.path: expected a folder, for source = {self.source!r}, got {got}"
            )
        return self.path

    def named(self) -> str:
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


_PROBE = (8, 16)
"""Height and width of an image that shows in which order a bundle's loader has them."""


def from_monai(chosen: Chosen) -> Loaded:
    """The bundle in a folder: ``network_def``, ``preprocessing`` and ``inferer`` of its
    configs/inference, parameters of models/model.pt or ``weights``, and the classes that its
    metadata names. ``options`` change its configuration, by MONAI's ids. The configuration is a
    program: what it says is run.
    """
    library("monai", "monai")
    folder = chosen.folder()
    if chosen.preprocessing:
        raise InputError(
            f"model.{next(iter(chosen.preprocessing))}: expected none, as a bundle has "
            "preprocessing of its own; options in [model] change its configuration, by MONAI's ids"
        )
    network, inferer, steps = chosen.made(lambda: _parts(_config(folder), folder, chosen.options))
    if network is None or steps is None:
        lacking = "network_def" if network is None else "preprocessing"
        raise InputError(
            f"{chosen.who}: expected network_def and preprocessing in its configuration, got no "
            f"{lacking}"
        )
    load_parameters(network, chosen.weights or folder / "models" / "model.pt")
    prepare = _Prepare(steps, f"{hash_file(_config(folder))} {dict(chosen.options)}")
    turned = chosen.made(lambda: prepare.turned)
    module = _network(network, inferer, turned=turned)
    return Loaded(module, prepare, chosen.classes or _classes(folder))


def _config(folder: Path) -> Path:
    for name in ("inference.json", "inference.yaml", "inference.yml"):
        if (folder / "configs" / name).is_file():
            return folder / "configs" / name
    raise InputError(
        f"model.path: expected a MONAI bundle, a folder with configs/inference.json or .yaml, got "
        f"{str(folder)!r}"
    )


def _parts(config: Path, folder: Path, changes: Mapping[str, Any]) -> list[Any]:
    """Network, inferer and preprocessing of a configuration; None for what it has not."""
    from monai.bundle import ConfigParser

    parser = ConfigParser()
    parser.read_config(str(config))
    parser.update({"bundle_root": str(folder), **changes})
    names = ("network_def", "inferer", "preprocessing")
    return [parser.get_parsed_content(n) if n in parser.config else None for n in names]


def _classes(folder: Path) -> Sequence[str] | None:
    path = folder / "configs" / "metadata.json"
    told = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for key in ("network_data_format", "outputs", "pred", "channel_def"):
        told = told.get(key, {}) if isinstance(told, dict) else {}
    return [str(told[str(place)]) for place in range(len(told))] if told else None


class _Prepare:
    """Images in a file for a moment, as the bundle's own loader reads files; ``of``: which
    configuration says how."""

    def __init__(self, steps: Any, of: str) -> None:
        self._steps, self._of = steps, of

    def __repr__(self) -> str:
        return f"prepared as by {self._of}"

    def __call__(self, image: Image) -> "torch.Tensor":
        return self._read(image, self._steps)

    @property
    def turned(self) -> bool:
        """Whether the loader puts the width before the height, as MONAI's for pictures does."""
        first = getattr(self._steps, "transforms", (self._steps,))[0]
        sides = self._read(np.zeros((*_PROBE, 3), np.uint8), first).shape
        return [n for n in sides if n in _PROBE] == [*reversed(_PROBE)]

    def _read(self, image: Image, steps: Any) -> "torch.Tensor":
        import torch

        with tempfile.TemporaryDirectory(prefix="avtt-") as folder:
            path = Path(folder) / "image.png"
            write_bytes(path, png(image))
            made = steps({"image": str(path)})["image"]
        plain = made.as_tensor() if hasattr(made, "as_tensor") else torch.as_tensor(made)
        return plain.float()


def _network(network: "torch.nn.Module", inferer: Any, *, turned: bool) -> "torch.nn.Module":
    """The network, asked by the bundle's inferer; its maps n x C x height x width."""
    import torch

    class Inferred(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, images: torch.Tensor) -> Any:
            said = self.network(images) if inferer is None else inferer(images, self.network)
            maps = isinstance(said, torch.Tensor) and said.ndim == 4
            return said.transpose(2, 3) if turned and maps else said

    return Inferred()


def from_timm(chosen: Chosen) -> Loaded:
    """Of timm: by name and weights, or from a folder of ``save_for_hf``."""
    timm = library("timm", "timm")
    if chosen.path is not None:
        folder = f"local-dir:{chosen.folder()}"
        module = chosen.made(lambda: timm.create_model(folder, pretrained=True, **chosen.options))
    else:
        name = chosen.named()
        if name.partition(".")[0] not in timm.list_models():
            raise unknown("architecture", name, timm.list_models(), "timm", "timm.list_models()")
        given = {**chosen.count("num_classes"), **chosen.options}
        module = chosen.filled(chosen.made(lambda: timm.create_model(name, **given)))
    config = timm.data.resolve_model_data_config(module)
    return Loaded(module, _scaled_by_timm(config, chosen), _named_by_timm(module, chosen))


def _scaled_by_timm(config: Mapping[str, Any], chosen: Chosen) -> Preset:
    """timm's evaluation transform: resized by 1 / crop_pct, the middle cut out."""
    channels, *sides = config["input_size"]
    before = [math.floor(side / config["crop_pct"]) for side in sides]
    square = before[0] == before[1]
    if config["crop_mode"] not in ("center", "squash") and "size" not in chosen.preprocessing:
        raise InputError(
            f"{chosen.who}: expected size, as its crop mode {config['crop_mode']!r} is not known "
            "here; say which [height, width] images are squeezed into"
        )
    if config["interpolation"] not in ("nearest", "bilinear", "bicubic"):
        config = {**config, "interpolation": "bicubic"}  # "random", "lanczos"
    return chosen.scaled(
        mean=config["mean"],
        std=config["std"],
        size=before[0] if square and config["crop_mode"] == "center" else before,
        crop=sides,
        interpolation=config["interpolation"],
        channels=chosen.options.get("in_chans", channels),
    )


def _named_by_timm(module: Any, chosen: Chosen) -> Sequence[str] | None:
    from timm.data import ImageNetInfo, infer_imagenet_subset

    told = chosen.classes or module.pretrained_cfg.get("label_names")
    subset = None if told else infer_imagenet_subset(module)
    return ImageNetInfo(subset).label_descriptions() if subset else told


def from_torchvision(chosen: Chosen) -> Loaded:
    """Of torchvision. ``preset``: the weights whose transforms and classes are meant, such as
    IMAGENET1K_V1; unless given, those that torchvision recommends."""
    models = library("torchvision.models", "torchvision")
    name = chosen.named()
    check_known("architecture", name, models.list_models(), "torchvision")
    known = models.get_model_weights(name)
    if chosen.preset is not None and chosen.preset not in known.__members__:
        raise unknown("preset", chosen.preset, known.__members__, f"torchvision {name}")
    weights = known[chosen.preset] if chosen.preset else known.DEFAULT
    preset = _scaled_by_torchvision(weights.transforms(), chosen)
    given: dict[str, Any] = {"weights": None, **chosen.count("num_classes"), **chosen.options}
    if "weights_backbone" in signature(models.get_model_builder(name)).parameters:
        given = {"weights_backbone": None, **given}  # else the backbone's would be fetched
    module = chosen.filled(chosen.made(lambda: models.get_model(name, **given)))
    return Loaded(module, preset, chosen.classes or weights.meta.get("categories"))


def _scaled_by_torchvision(transforms: Any, chosen: Chosen) -> Preset:
    """The preset that torchvision's weights name; resized by the shorter side."""
    size, crop = (getattr(transforms, name, None) for name in ("resize_size", "crop_size"))
    if size is None:
        raise InputError(
            f"{chosen.who}: expected a classifier or a semantic segmenter, got a network "
            "of another kind; wrap it in a callable, kind = 'python'"
        )
    return chosen.scaled(
        mean=transforms.mean,
        std=transforms.std,
        size=size[0] if len(size) == 1 else size,
        crop=None if crop is None else (crop * 2 if len(crop) == 1 else crop),
        interpolation=transforms.interpolation.value,
    )


def from_segmentation_models(chosen: Chosen) -> Loaded:
    """Of segmentation-models-pytorch: by name and weights, or a folder of ``save_pretrained``.

    Images keep their size, but for sides that are brought up to what the encoder takes.
    """
    smp = library("segmentation_models_pytorch", "segmentation-models")
    if chosen.path is not None:
        folder = str(chosen.folder())
        module = chosen.made(lambda: smp.from_pretrained(folder, **chosen.options))
        chosen = replace(chosen, options=dict(module.config))
    else:
        given = {"encoder_weights": None, **chosen.count("classes"), **chosen.options}
        module = chosen.made(lambda: smp.create_model(chosen.named(), **given))
        module = chosen.filled(module)
    return Loaded(module, chosen.by_hand(multiple=module.encoder.output_stride), chosen.classes)


def from_hub(chosen: Chosen) -> Loaded:
    """What a function of the folder's hubconf.py gives. Its code is run."""
    import torch

    folder, name = chosen.folder(), chosen.named()
    if not (folder / "hubconf.py").is_file():
        raise InputError(f"model.path: expected a folder with a hubconf.py, got {str(folder)!r}")
    load: Any = torch.hub.load
    module = chosen.made(lambda: load(str(folder), name, source="local", **chosen.options))
    if not isinstance(module, torch.nn.Module):
        raise InputError(
            f"{chosen.who}: expected a torch module, got {type(module).__name__}; a callable is a "
            "model of kind = 'python'"
        )
    module = module if chosen.weights is None else chosen.filled(module)
    return Loaded(module, chosen.by_hand(), chosen.classes)


_FIELDS = ("architecture", "path", "weights", "preset")
_SOURCES: Mapping[str, tuple[Callable[[Chosen], Loaded], tuple[str, ...]]] = {
    "timm": (from_timm, ("architecture", "path", "weights")),
    "torchvision": (from_torchvision, ("architecture", "weights", "preset")),
    "segmentation-models": (from_segmentation_models, _FIELDS),
    "hub": (from_hub, _FIELDS),
    "monai": (from_monai, ("path", "weights")),
}
"""What loads each, and which of the fields that are not for all sources it takes."""


def _check(chosen: Chosen, taken: Sequence[str]) -> None:
    """Raises InputError for a field that would be without effect."""
    for name in _FIELDS:
        if getattr(chosen, name) is not None and name not in taken:
            raise InputError(
                f"model.{name}: expected none for source = {chosen.source!r}, which takes "
                f"{', '.join(taken)}, got {str(getattr(chosen, name))!r}"
            )
    beside = chosen.architecture or chosen.weights
    if chosen.source in ("timm", "segmentation-models") and chosen.path and beside:
        raise InputError(
            "model.path: expected a folder alone, which holds network and parameters, got it "
            f"beside {str(beside)!r}; leave one of them out"
        )


def load(chosen: Chosen) -> Loaded:
    """The network. Raises InputError where there is none, or where it cannot be used."""
    check_known("source", chosen.source, _SOURCES, "model.source")
    read, taken = _SOURCES[chosen.source]
    _check(chosen, taken)
    return read(chosen)
