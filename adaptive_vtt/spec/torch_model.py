"""kind = "torch": a network of timm, torchvision, segmentation-models, torch's hub or MONAI."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ..datasets import Dataset
from ..datasets.base import adapted_dataset
from ..models import REGISTRY, ModelUnderTest
from ..models.local.presets import Interpolation
from ..models.local.torch_choice import Source
from .model_section import ModelSection
from .workers import Worked

_PREPROCESSING = ("size", "crop", "mean", "std", "white", "interpolation")


class TorchSection(ModelSection, Worked):
    """A network of a torch library or of a folder, on this machine."""

    kind: Literal["torch"] = "torch"
    source: Source = Field(
        description="whose network it is; hub is a folder with a hubconf.py, monai a bundle's"
    )
    architecture: str | None = Field(
        None,
        description="its name in the library (resnet50, unet), or of the function in hubconf.py",
    )
    path: str | None = Field(
        None,
        description="hub, monai: the folder; timm, segmentation-models: one that save_for_hf or "
        "save_pretrained wrote, instead of architecture and weights",
    )
    weights: str | None = Field(
        None,
        description="the file with its parameters, .safetensors or as torch.save writes a "
        "state_dict; nothing is fetched (monai: models/model.pt)",
    )
    options: dict[str, Any] = Field(
        {},
        description="further arguments of what makes it, such as encoder_name; monai: changes of "
        "its configuration, by MONAI's ids",
    )
    classes: list[str] | None = Field(
        None, description="what its outputs are, in their order (default: as the library says)"
    )
    class_names: dict[str, str | list[str]] | None = Field(
        None, description="concept -> class or classes of it (default: the one of its name)"
    )
    activation: Literal["none", "sigmoid", "softmax"] | None = Field(
        None,
        description="what makes probabilities of its output (a sigmoid of one class, a softmax of "
        "several)",
    )
    output: int | str | None = Field(
        None, description="which of several outputs is read, by number (-1 is the last) or name"
    )
    preset: str | None = Field(
        None,
        description="torchvision: the weights whose preprocessing and classes are meant "
        "(those it recommends); segmentation-models, hub: imagenet, for ImageNet's mean and std",
    )
    size: int | list[int] | None = Field(
        None,
        description="what images are resized to: their shorter side, or [height, width] (as the "
        "library says; else their own)",
    )
    crop: list[int] | None = Field(
        None, description="[height, width] of the middle that is cut out then; classifiers alone"
    )
    mean: list[float] | None = Field(None, description="of pixels in 0..white")
    std: list[float] | None = Field(None, description="of pixels in 0..white")
    white: float | None = Field(
        None, description="what a white pixel is before mean and std: 1, or 255 (1)", gt=0
    )
    interpolation: Interpolation | None = Field(None, description="of what is resized (bilinear)")
    batch_size: int | None = Field(None, description="images at a time (16)", ge=1)
    device: str | None = Field(
        None, description="cpu, cuda or cuda:1; CUDA where there is one (auto)"
    )

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        """The network; folder and weights start at ``base``."""
        given = self.own("source")
        told = {name: given.pop(name) for name in _PREPROCESSING if name in given}
        given |= {name: base / given[name] for name in ("path", "weights") if name in given}
        made = REGISTRY.get(self.kind)
        model = made(self.source, **given, preprocessing=told, **self.named())
        model.check_concepts(adapted_dataset(dataset).asked[0])
        return model
