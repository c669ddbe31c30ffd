"""From images to the tensor that a network takes, and from what it gives to answers."""

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
    """An image input of rank 4; None if a size is free."""

    batch: int | None
    channels: int | None
    height: int | None
    width: int | None
    channels_first: bool

    @classmethod
    def of(cls, shape: Sequence[object], where: str) -> "InputShape":
        """Read n x ch x H x W, or n x H x W x ch; the channels are the size that is 1 or 3.

        Sizes that are no positive number are free. Raises InputError for other shapes.
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
    """Pixels to numbers: (pixel / 255 - mean) / std by channel; inputs of uint8 take pixels.

    Images are first given the channels and, where it is fixed, the size that the network
    takes: grey is repeated, colour weighed to grey, sizes by area or linear interpolation.
    """

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if not all(s > 0 for s in self.std):
            raise InputError(f"std: expected numbers above 0, got {list(self.std)}")

    def apply(
        self, image: Image, shape: InputShape, dtype: npt.DTypeLike = np.float32
    ) -> npt.NDArray[Any]:
        """Return the image H x W x C as ch x H x W or H x W x ch of ``dtype``."""
        pixels: npt.NDArray[Any] = fitted(image, shape.height, shape.width, shape.channels)
        if dtype != np.uint8:
            for name, given in (("mean", self.mean), ("std", self.std)):
                if len(given) not in (1, pixels.shape[2]):
                    expected = f"expected one number, or {pixels.shape[2]} (one per channel)"
                    raise InputError(f"{name}: {expected}, got {len(given)}")
            pixels = ((pixels / 255 - np.array(self.mean)) / np.array(self.std)).astype(dtype)
        return np.ascontiguousarray(pixels.transpose(2, 0, 1) if shape.channels_first else pixels)


def fitted(image: Image, height: int | None, width: int | None, channels: int | None) -> Image:
    """Return the image H x W x C in this size and with 1 or 3 channels; None: its own."""
    import cv2

    if channels == 3 and image.shape[2] == 1:
        image = np.repeat(image, 3, axis=2)
    elif channels == 1 and image.shape[2] == 3:
        image = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[:, :, None]
    height, width = height or image.shape[0], width or image.shape[1]
    if (height, width) != image.shape[:2]:
        smaller = height * width < image.shape[0] * image.shape[1]
        how = cv2.INTER_AREA if smaller else cv2.INTER_LINEAR
        resized = cv2.resize(image, (width, height), interpolation=how)
        return np.asarray(resized, np.uint8).reshape(height, width, image.shape[2])
    return image


def batches(
    prompts: Sequence[Prompt], size: int, tensor: Callable[[Prompt], T]
) -> Iterator[tuple[Sequence[Prompt], Sequence[T]]]:
    """Return prompts and their tensors, at most ``size`` at a time, of one shape, in order."""
    for start in range(0, len(prompts), size):
        pairs = [(prompt, tensor(prompt)) for prompt in prompts[start : start + size]]
        for _, group in groupby(pairs, key=lambda pair: pair[1].shape):
            alike, tensors = zip(*group, strict=True)
            yield alike, tensors


def small(image: Image, side: int) -> tuple[int, int, int]:
    """Return height, width and channels (1 or 3) of a thumbnail of at most ``side`` pixels."""
    height, width, channels = image.shape
    return min(height, side), min(width, side), 1 if channels == 1 else 3


class TensorModel(ModelDefaults):
    """A model that takes one tensor, an image, and returns one or several.

    The output that is read is n x C, or n x C x H x W of a segmenter. Maps have the layout of the
    input, and are brought to the size of the image before they are cut at one half.

    Args:
        output: The name of the output; None: there is one.
        concepts: The concepts of its C columns; None: those asked about, in their order.
        activation: Turns its numbers into P(yes).
        mean: See `Preprocessing`, as for ``std``.
        options: Those of the other base classes.
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
        """Return the output that is read; raise InputError if there is none of its name."""
        if self._output is None and len(names) != 1:
            raise InputError(f"{where}: expected model.output, one of {', '.join(names) or 'none'}")
        check_known("output", self._output or names[0], names, where)
        return self._output or names[0]

    def _answers(
        self, output: npt.NDArray[Any], prompts: Sequence[Prompt], shape: InputShape, who: str
    ) -> list[Answer]:
        """Return one answer per prompt; raise ModelError for an output that does not fit them."""
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
        """Return the numbers, or the maps as large as the image, of the prompt's concepts."""
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
    """Return P(yes) n x C ...; a softmax is over C."""
    from scipy.special import expit, softmax

    if activation == "sigmoid":
        return np.asarray(expit(output))
    # rounding must not lift a probability above 1
    return output if activation == "none" else np.asarray(softmax(output, axis=1).clip(0, 1))
