"""From pixels to a torch network's input, in the steps that its training had.

The steps are those of torchvision's and timm's evaluation transforms, on tensors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from ...errors import InputError
from ...types import Image
from ...utils.options import Option
from .tensors import InputShape, fitted

if TYPE_CHECKING:
    import torch

Interpolation = Literal["nearest", "bilinear", "bicubic"]
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Mean and std of ImageNet's pixels in 0..1, by which most networks were trained."""


@dataclass(frozen=True)
class Preset:
    """Images are resized, cut and scaled: (pixel / 255 * white - mean) / std by channel.

    ``size``: what the shorter side becomes, or (height, width) of what the image is squeezed into;
    None: as it is. ``crop``: (height, width) of the middle that is cut out, black where the image
    is smaller. ``multiple``: sides are brought up to multiples of it. ``white``: what a white pixel
    is before mean and std. ``channels``: 3, or 1 for grey.
    """

    mean: Sequence[float] = IMAGENET[0]
    std: Sequence[float] = IMAGENET[1]
    size: int | Sequence[int] | None = None
    crop: Sequence[int] | None = None
    multiple: int = 1
    interpolation: Interpolation = "bilinear"
    white: float = 1.0
    channels: int = 3

    def __post_init__(self) -> None:
        for name, numbers in (("mean", self.mean), ("std", self.std)):
            if len(numbers) not in (1, self.channels):
                raise InputError(
                    f"model.{name}: expected one number, or {self.channels} (one per channel), "
                    f"got {len(numbers)}"
                )
        if not all(s > 0 for s in self.std):
            raise InputError(f"model.std: expected numbers above 0, got {list(self.std)}")
        for name, sides in (("size", self.size), ("crop", self.crop)):
            both = [sides] if isinstance(sides, int) else list(sides or [1])
            if len(both) > 2 or (name == "crop" and sides and len(both) != 2) or min(both) < 1:
                raise InputError(f"model.{name}: expected [height, width] in pixels, got {sides!r}")

    @property
    def sides(self) -> tuple[int, int] | None:
        """Height and width that every input has; None where they follow from the image's."""
        if self.crop is not None:
            return self.crop[0], self.crop[1]
        if self.size is None or isinstance(self.size, int):
            return None
        return self._sides(self.size[0], self.size[1])

    def __call__(self, image: Image) -> "torch.Tensor":
        """An image H x W x C as ch x h x w, float32."""
        import torch

        pixels = fitted(image, InputShape(None, self.channels, None, None, channels_first=False))
        planes = torch.from_numpy(np.ascontiguousarray(pixels)).permute(2, 0, 1).float()
        planes = self._resized(planes)
        if self.crop is not None:
            planes = _middle(planes, self.crop[0], self.crop[1])
        mean, std = (torch.tensor(list(n))[:, None, None] for n in (self.mean, self.std))
        return (planes / 255 * self.white - mean) / std

    def _resized(self, planes: "torch.Tensor") -> "torch.Tensor":
        from torch.nn.functional import interpolate

        sides = self._sides(planes.shape[1], planes.shape[2])
        if sides == (planes.shape[1], planes.shape[2]):
            return planes
        if self.interpolation == "nearest":
            return interpolate(planes[None], sides, mode="nearest-exact")[0]
        made = interpolate(planes[None], sides, mode=self.interpolation, antialias=True)[0]
        return made.round().clamp(0, 255)  # images are whole numbers when libraries resize them

    def _sides(self, height: int, width: int) -> tuple[int, int]:
        if isinstance(self.size, int):
            shorter = min(height, width)
            height, width = self.size * height // shorter, self.size * width // shorter
        elif self.size is not None:
            height, width = self.size
        upwards = self.multiple
        return -(-height // upwards) * upwards, -(-width // upwards) * upwards


def _middle(planes: "torch.Tensor", height: int, width: int) -> "torch.Tensor":
    from torch.nn.functional import pad

    beyond = [
        max(0, side - got) for side, got in zip((height, width), planes.shape[1:], strict=True)
    ]
    if any(beyond):
        above, left = beyond[0] // 2, beyond[1] // 2
        planes = pad(planes, (left, beyond[1] - left, above, beyond[0] - above))
    top = round((planes.shape[1] - height) / 2)
    start = round((planes.shape[2] - width) / 2)
    return planes[:, top : top + height, start : start + width]


def told(
    *,
    size: Annotated[
        int | Sequence[int] | None,
        Option(
            "what images are resized to: their shorter side, or [height, width] (default: as the "
            "library says; else their own)"
        ),
    ] = None,
    crop: Annotated[
        Sequence[int] | None,
        Option("[height, width] of the middle that is cut out then; classifiers alone"),
    ] = None,
    mean: Annotated[Sequence[float] | None, Option("of pixels in 0..white")] = None,
    std: Annotated[Sequence[float] | None, Option("of pixels in 0..white")] = None,
    white: Annotated[
        float | None,
        Option("what a white pixel is before mean and std, 1 or 255 (default: 1)", gt=0),
    ] = None,
    interpolation: Annotated[
        Interpolation | None, Option("of what is resized (default: bilinear)")
    ] = None,
) -> dict[str, Any]:
    """The fields of a ``Preset`` that are given."""
    given: dict[str, Any] = {"size": size, "crop": crop, "mean": mean, "std": std}
    given |= {"white": white, "interpolation": interpolation}
    return {name: value for name, value in given.items() if value is not None}
