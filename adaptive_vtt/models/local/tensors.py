"""From images to the tensor that a network takes, and from what it gives to answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt

from ...errors import InputError, ModelError, unknown
from ...types import Answer, Image, Prompt
from ...utils.options import Option
from ..checking import to_answers

Activation = Literal["none", "sigmoid", "softmax"]
OutputName = Annotated[str | None, Option("the output to read, where there are several")]
Columns = Annotated[
    Sequence[str] | None, Option("what the output's columns are (default: the dataset's, in order)")
]
Activating = Annotated[Activation, Option("what makes P(yes) of the output")]
Pixels = Annotated[Sequence[float], Option("of pixels in 0..1")]


@dataclass(frozen=True)
class InputShape:
    """An image input of rank 4; None where a size is free."""

    batch: int | None
    channels: int | None
    height: int | None
    width: int | None
    channels_first: bool

    @classmethod
    def of(cls, shape: Sequence[object], where: str) -> "InputShape":
        """From n x ch x H x W, or n x H x W x ch, told apart by which of the two is 1 or 3.

        Sizes that are no positive number are free. Raises InputError for other shapes.
        """
        sizes = [s if isinstance(s, int) and s > 0 else None for s in shape]
        if len(sizes) == 4 and (sizes[1] in (1, 3) or sizes[1] is sizes[3] is None):
            return cls(sizes[0], sizes[1], sizes[2], sizes[3], True)
        if len(sizes) == 4 and sizes[3] in (1, 3):
            return cls(sizes[0], sizes[3], sizes[1], sizes[2], False)
        raise InputError(
            f"{where}: expected an input of images, n x ch x H x W or n x H x W x ch with 1 or "
            f"3 channels, got shape {list(shape)}"
        )


@dataclass(frozen=True)
class Preprocessing:
    """Pixels to numbers: (pixel / 255 - mean) / std by channel; inputs of uint8 take pixels.

    Images are first given the channels and, where it is fixed, the size that the network
    takes: grey is repeated, colour weighed to grey, sizes by area or linear interpolation.
    """

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if not all(s > 0 for s in self.std):
            raise InputError(f"std: expected numbers above 0, got {list(self.std)}")

    def levels(self, channels: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """ch x 256: what each pixel value of each channel becomes."""
        pixels = np.arange(256, dtype=np.float64)
        if dtype == np.uint8:
            return np.tile(pixels.astype(np.uint8), (channels, 1))
        for name, given in (("mean", self.mean), ("std", self.std)):
            if len(given) not in (1, channels):
                raise InputError(
                    f"{name}: expected one number, or {channels} (one per channel), got "
                    f"{len(given)}"
                )
        mean, std = np.array(self.mean)[:, None], np.array(self.std)[:, None]
        levels = (pixels / 255 - mean) / std
        return np.broadcast_to(levels, (channels, 256)).astype(dtype)

    def apply(
        self,
        image: Image,
        shape: InputShape,
        table: npt.NDArray[Any] | None = None,
        dtype: npt.DTypeLike = np.float32,
    ) -> npt.NDArray[Any]:
        """The image H x W x C as ch x H x W or H x W x ch of ``dtype``, or of ``table``.

        ``table``: ch x 256, instead of ``levels``.
        """
        pixels = fitted(image, shape)
        channels = pixels.shape[2]
        table = self.levels(channels, dtype) if table is None else table
        planes = [table[channel].take(pixels[:, :, channel]) for channel in range(channels)]
        return np.stack(planes, axis=0 if shape.channels_first else -1)


def fitted(image: Image, shape: InputShape) -> Image:
    """The image H x W x C in the channels and size of the input."""
    import cv2

    if shape.channels == 3 and image.shape[2] == 1:
        image = np.repeat(image, 3, axis=2)
    elif shape.channels == 1 and image.shape[2] == 3:
        image = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[:, :, None]
    height, width = shape.height or image.shape[0], shape.width or image.shape[1]
    if (height, width) != image.shape[:2]:
        smaller = height * width < image.shape[0] * image.shape[1]
        how = cv2.INTER_AREA if smaller else cv2.INTER_LINEAR
        channels = image.shape[2]
        image = cv2.resize(image, (width, height), interpolation=how)
        image = np.asarray(image, np.uint8).reshape(height, width, channels)
    return image


def small(image: Image, side: int) -> tuple[int, int, int]:
    """Height, width and channels (1 or 3) of an image's thumbnail of at most ``side`` pixels."""
    height, width, channels = image.shape
    return min(height, side), min(width, side), 1 if channels == 1 else 3


def shrunk(image: Image, shape: tuple[int, int, int]) -> Image:
    """The image in ``shape``: height, width and channels."""
    height, width, channels = shape
    return fitted(image, InputShape(None, channels, height, width, channels_first=False))


@dataclass(frozen=True)
class Outputs:
    """How to read a network's output n x C, or n x C x H x W of a segmenter.

    ``concepts``: what its C columns are (None: the concepts asked about, in their order);
    ``activation``: what turns its numbers into P(yes). Maps have the layout of the input, and
    are brought to the size of the image before they are cut at one half.
    """

    concepts: tuple[str, ...] | None = None
    activation: Activation = "none"

    def answers(
        self, output: npt.NDArray[Any], prompts: Sequence[Prompt], shape: InputShape, who: str
    ) -> list[Answer]:
        """One answer per prompt; raises ModelError for an output that does not fit them."""
        output = np.asarray(output, float)
        if output.ndim == 1:
            output = output[:, None]
        if output.ndim == 4 and not shape.channels_first:
            output = output.transpose(0, 3, 1, 2)
        if output.ndim not in (2, 4) or len(output) != len(prompts):
            raise ModelError(
                f"{who}: expected an output of shape ({len(prompts)}, C) or "
                f"({len(prompts)}, C, H, W), got {output.shape}"
            )
        output = activated(output, self.activation)
        chosen = [self._columns(row, p, who) for row, p in zip(output, prompts, strict=True)]
        return to_answers(chosen, prompts, who)

    def _columns(self, row: npt.NDArray[Any], prompt: Prompt, who: str) -> npt.NDArray[Any]:
        if self.concepts is not None:
            if len(row) != len(self.concepts):
                raise ModelError(
                    f"{who}: expected {len(self.concepts)} outputs (its concepts), got {len(row)}"
                )
            row = row[[_index(concept, self.concepts) for concept in prompt.concepts]]
        if row.ndim == 1 or prompt.image is None:
            return row
        if len(row) != len(prompt.concepts):
            raise ModelError(f"{who}: expected {len(prompt.concepts)} maps, got {len(row)}")
        import cv2

        height, width = prompt.image.shape[:2]
        maps = [cv2.resize(m, (width, height), interpolation=cv2.INTER_LINEAR) for m in row]
        return np.stack(maps).clip(0, 1)


def activated(output: npt.NDArray[Any], activation: Activation) -> npt.NDArray[Any]:
    """n x C ..., a softmax over C."""
    from scipy.special import expit, softmax

    if activation == "sigmoid":
        return np.asarray(expit(output))
    # rounding must not lift a probability above 1
    return output if activation == "none" else np.asarray(softmax(output, axis=1).clip(0, 1))


def _index(concept: str, concepts: Sequence[str]) -> int:
    if concept not in concepts:
        raise unknown("concept", concept, concepts, "model.concepts")
    return concepts.index(concept)
