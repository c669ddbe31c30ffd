"""MONAI bundles: the network, parameters, preprocessing and inferer that a folder describes.

A bundle's configuration is a program: what it says is run.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...types import Image
from ...utils.files import hash_file, write_bytes
from ...utils.image_codec import png
from .parameters import load_parameters
from .torch_choice import Chosen, Loaded, library

if TYPE_CHECKING:
    import torch

_PROBE = (8, 16)
"""Height and width of an image that shows in which order a bundle's loader has them."""


def from_monai(chosen: Chosen) -> Loaded:
    """The bundle in a folder: ``network_def``, ``preprocessing`` and ``inferer`` of its
    configs/inference, parameters of models/model.pt or ``weights``, and the classes that its
    metadata names. ``options`` change its configuration, by MONAI's ids.
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
    """The names that metadata.json gives to the channels of the prediction."""
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
