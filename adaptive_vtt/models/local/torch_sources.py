"""Networks of torch's libraries, and of folders, with the preprocessing that belongs to them.

Nothing is fetched: parameters come from a file or folder on this machine.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

from ...errors import InputError, unknown
from .monai_bundle import from_monai
from .presets import Preset
from .torch_choice import Chosen, Loaded, library


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
    if name not in models.list_models():
        raise unknown("architecture", name, models.list_models(), "torchvision")
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
    if chosen.source not in _SOURCES:
        raise unknown("source", chosen.source, _SOURCES, "model.source")
    read, taken = _SOURCES[chosen.source]
    _check(chosen, taken)
    return read(chosen)
