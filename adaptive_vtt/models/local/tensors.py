"""Convert images to the input tensor of a network, and its output tensor to answers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ...errors import InputError, ModelError, check_known
from ...types import Answer, Image, Prompt
from ...utils.options import Option
from ..base import ModelDefaults
from ..checking import to_answers

T = TypeVar("T", bound=Any)
Activation = Literal["none", "sigmoid", "softmax"]
Pixels = Annotated[Sequence[float], Option("of pixels in 0..1")]


@dataclass(frozen=True)
class InputShape:
    """Shape of a network's input for images; a size of None may have any value."""

    batch: int | None
    channels: int | None
    height: int | None
    width: int | None
    channels_first: bool

    @classmethod
    def of(cls, shape: Sequence[object], where: str) -> "InputShape":
        """Read a shape n x ch x H x W or n x H x W x ch, whose channels are the size of 1 or 3.

        Args:
            shape: Four sizes; one that is no positive number may have any value.
            where: The model, for errors.

        Raises:
            InputError: The shape is none of both.
        """
        sizes = [s if isinstance(s, int) and s > 0 else None for s in shape]
        if len(sizes) == 4 and (sizes[1] in (1, 3) or sizes[1] is sizes[3] is None):
            return cls(sizes[0], sizes[1], sizes[2], sizes[3], True)
        if len(sizes) == 4 and sizes[3] in (1, 3):
            return cls(sizes[0], sizes[3], sizes[1], sizes[2], False)
        expected = "an input of images, n x ch x H x W or n x H x W x ch with 1 or 3 channels"
        raise InputError(f"{where}: expected {expected}, got shape {list(shape)}")


@dataclass(frozen=True)
class Preprocessing:
    """Conversion of pixels to a network's input: (pixel / 255 - mean) / std for each channel.

    Before, images get the channels and the size of the input, if those are fixed. Networks with an
    input of uint8 get pixels unchanged.

    Attributes:
        mean: Mean of pixels in [0, 1], one number or one per channel.
        std: Standard deviation of pixels in [0, 1], above 0, one number or one per channel.
    """

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if not all(s > 0 for s in self.std):
            raise InputError(f"std: expected numbers above 0, got {list(self.std)}")

    def apply(
        self, image: Image, shape: InputShape, dtype: npt.DTypeLike = np.float32
    ) -> npt.NDArray[Any]:
        """Return an image as input of a network, without the batch dimension.

        Args:
            image: H x W x C of uint8.
            shape: The shape of the input.
            dtype: The type of the input.

        Raises:
            InputError: ``mean`` or ``std`` does not have one number per channel.
        """
        pixels: npt.NDArray[Any] = fitted(image, shape.height, shape.width, shape.channels)
        if dtype != np.uint8:
            for name, numbers in (("mean", self.mean), ("std", self.std)):
                if len(numbers) not in (1, pixels.shape[2]):
                    expected = f"expected one number, or {pixels.shape[2]} (one per channel)"
                    raise InputError(f"{name}: {expected}, got {len(numbers)}")
            pixels = ((pixels / 255 - np.array(self.mean)) / np.array(self.std)).astype(dtype)
        return np.ascontiguousarray(pixels.transpose(2, 0, 1) if shape.channels_first else pixels)


def fitted(image: Image, height: int | None, width: int | None, channels: int | None) -> Image:
    """Return an image H x W x C of uint8 in another size, or with other channels.

    Grey is repeated as three channels; colour is converted to grey by its luminance. Sizes change
    by area interpolation if the image shrinks, else by bilinear interpolation.

    Args:
        image: The image.
        height: Height in pixels; None: unchanged, as for ``width`` and ``channels``.
        width: Width in pixels.
        channels: 1 or 3.
    """
    import cv2

    if channels == 3 and image.shape[2] == 1:
        image = np.repeat(image, 3, axis=2)
    elif channels == 1 and image.shape[2] == 3:
        image = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[:, :, None]
    height, width = height or image.shape[0], width or image.shape[1]
    if (height, width) != image.shape[:2]:
        shrinks = height * width < image.shape[0] * image.shape[1]
        interpolation = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
        resized = cv2.resize(image, (width, height), interpolation=interpolation)
        return np.asarray(resized, np.uint8).reshape(height, width, image.shape[2])
    return image


def batches(
    prompts: Sequence[Prompt], size: int, tensor: Callable[[Prompt], T]
) -> Iterator[tuple[Sequence[Prompt], Sequence[T]]]:
    """Yield batches of consecutive prompts with their tensors, which have one shape in each batch.

    Args:
        prompts: The prompts.
        size: Maximum size of a batch.
        tensor: Function from a prompt to its tensor.
    """
    for start in range(0, len(prompts), size):
        pairs = [(prompt, tensor(prompt)) for prompt in prompts[start : start + size]]
        for _, same_shape in groupby(pairs, key=lambda pair: pair[1].shape):
            batch, tensors = zip(*same_shape, strict=True)
            yield batch, tensors


def small(image: Image, side: int) -> tuple[int, int, int]:
    """Return height, width and channels (1 or 3) of a thumbnail with sides of at most ``side``."""
    height, width, channels = image.shape
    return min(height, side), min(width, side), 1 if channels == 1 else 3


class TensorModel(ModelDefaults):
    """A model with one input tensor, an image, and one or several output tensors.

    The output is n x C, or n x C x H x W for a segmenter; the latter has channels first or last as
    the input does. Its maps are resized to the image before they are cut at one half.

    Args:
        output: Name of the output that is read. Default None: the only one.
        concepts: The concepts of its C columns. Default None: those asked about, in their order.
        activation: Function that turns its numbers into P(yes).
        mean: As in `Preprocessing`.
        std: As in `Preprocessing`.
        **options: Options of the other base classes.

    Raises:
        InputError: A number of ``std`` is not above 0.
    """

    def __init__(
        self,
        *,
        output: Annotated[str | None, Option("the output to read, where there are several")] = None,
        concepts: Annotated[
            Sequence[str] | None, Option("of the output's columns (default: the dataset's)")
        ] = None,
        activation: Annotated[Activation, Option("what makes P(yes) of the output")] = "none",
        mean: Pixels = (0.0,),
        std: Pixels = (1.0,),
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._output, self._activation = output, activation
        self._concepts = None if concepts is None else tuple(concepts)
        self._preprocessing = Preprocessing(tuple(mean), tuple(std))

    def _output_among(self, names: Sequence[str], where: str) -> str:
        """Return the name of the output that is read.

        Args:
            names: The names of all outputs.
            where: The model, for errors.

        Raises:
            InputError: The name is not known, or missing although there are several outputs.
        """
        if self._output is None and len(names) != 1:
            raise InputError(f"{where}: expected model.output, one of {', '.join(names) or 'none'}")
        check_known("output", self._output or names[0], names, where)
        return self._output or names[0]

    def _answers(
        self, output: npt.NDArray[Any], prompts: Sequence[Prompt], shape: InputShape, who: str
    ) -> list[Answer]:
        """Return one answer per prompt.

        Args:
            output: n x C, or (n,); or n maps of C concepts, with channels first or last.
            prompts: The n prompts.
            shape: The shape of the input.
            who: The model, for errors.

        Raises:
            ModelError: The output has another shape.
        """
        output = np.asarray(output, float)
        if output.ndim == 1:
            output = output[:, None]
        if output.ndim == 4 and not shape.channels_first:
            output = output.transpose(0, 3, 1, 2)
        if output.ndim not in (2, 4) or len(output) != len(prompts):
            shapes = f"({len(prompts)}, C) or ({len(prompts)}, C, H, W)"
            raise ModelError(f"{who}: expected an output of shape {shapes}, got {output.shape}")
        rows = zip(activated(output, self._activation), prompts, strict=True)
        return to_answers([self._columns(row, prompt, who) for row, prompt in rows], prompts, who)

    def _columns(self, row: npt.NDArray[Any], prompt: Prompt, who: str) -> npt.NDArray[Any]:
        """Return P(yes) of the prompt's concepts, or maps of it as large as the image.

        Args:
            row: The output for one image, (C,) or C x H x W.
            prompt: The prompt.
            who: The model, for errors.
        """
        if self._concepts is not None:
            if len(row) != len(self._concepts):
                raise ModelError(
                    f"{who}: expected {len(self._concepts)} outputs (its concepts), got {len(row)}"
                )
            for concept in prompt.concepts:
                check_known("concept", concept, self._concepts, "model.concepts")
            row = row[[self._concepts.index(concept) for concept in prompt.concepts]]
        if row.ndim == 1 or prompt.image is None:
            return row
        if len(row) != len(prompt.concepts):
            raise ModelError(f"{who}: expected {len(prompt.concepts)} maps, got {len(row)}")
        import cv2

        height, width = prompt.image.shape[:2]
        maps = [cv2.resize(m, (width, height), interpolation=cv2.INTER_LINEAR) for m in row]
        return np.stack(maps).clip(0, 1)


def activated(output: npt.NDArray[Any], activation: Activation) -> npt.NDArray[Any]:
    """Return P(yes) for an output n x C or n x C x H x W; a softmax is over the C classes."""
    from scipy.special import expit, softmax

    if activation == "none":
        return output
    if activation == "sigmoid":
        return np.asarray(expit(output))
    return np.asarray(softmax(output, axis=1).clip(0, 1))  # rounding may exceed 1
