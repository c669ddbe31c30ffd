"""Networks with random weights: in a folder with a hubconf.py, and in a MONAI bundle."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

HUBCONF = '''
dependencies = ["torch"]

import torch
from torch import nn


class Segmenter(nn.Module):
    """Like PraNet: four maps of logits, at a quarter of the input's sides, the last the best."""

    def __init__(self):
        super().__init__()
        self.seen = nn.Conv2d(3, 4, 4, stride=4)

    def forward(self, images):
        return tuple(self.seen(images)[:, [k]] for k in range(4))


class Classifier(nn.Module):
    def __init__(self, classes, kind="tensor"):
        super().__init__()
        self.head, self.kind = nn.Linear(3, classes), kind

    def forward(self, images):
        said = self.head(images.mean((2, 3)))
        return {"tensor": said, "named": {"features": images, "logits": said}}[self.kind]


def segmenter():
    """A PraNet in small."""
    return Segmenter()


def classifier(classes=2, kind="tensor"):
    """Looks at mean colours."""
    return Classifier(classes, kind)
'''


def hub(folder: Path) -> Path:
    """Write a folder for ``torch.hub``, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hubconf.py").write_text(HUBCONF)
    return folder


def of_hub(folder: Path, name: str, *arguments: Any) -> nn.Module:
    """Return the network of a function of the folder."""
    load: Any = torch.hub.load
    return load(str(hub(folder)), name, *arguments, source="local")


def saved(module: nn.Module, path: Path, **others: Any) -> Path:
    """Write a module's parameters; with ``others``, write a checkpoint of training."""
    state = module.state_dict()
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"state_dict": state, **others} if others else state, path)
    return path


def bundle(folder: Path) -> Path:
    """Write a MONAI bundle of a segmenter whose logits follow from the first channel of an image.

    So masks show the orientation of the image.
    """
    transforms = [
        {"_target_": "LoadImaged", "keys": "image"},
        {"_target_": "EnsureChannelFirstd", "keys": "image", "channel_dim": -1},
        {"_target_": "Resized", "keys": "image", "spatial_size": [32, 24]},
        {"_target_": "ScaleIntensityd", "keys": "image"},
    ]
    network = {"_target_": "torch.nn.Conv2d", "in_channels": 3, "out_channels": 2, "kernel_size": 1}
    config = {
        "network_def": network,
        "preprocessing": {"_target_": "Compose", "transforms": transforms},
        "inferer": {"_target_": "SimpleInferer"},
    }
    (folder / "configs").mkdir(parents=True)
    (folder / "configs" / "inference.json").write_text(json.dumps(config))
    layer = nn.Conv2d(3, 2, 1)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[0.0, 0, 0], [1, 0, 0]])[:, :, None, None])
        layer.bias.copy_(torch.tensor([0.5, 0]))
    saved(layer, folder / "models" / "model.pt")
    return folder
