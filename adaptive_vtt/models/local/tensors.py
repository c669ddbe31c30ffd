"""From images to the tensor that a network takes, and from what it gives to answers: which of its
classes a concept is, and how likely that makes it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ...errors import InputError, ModelError, check_known, unknown
from ...types import Answer, Image, Prompt
from ...utils.options import Option
from ..base import ModelDefaults
from ..checking import to_answers

if TYPE_CHECKING:
    import torch

T = TypeVar("T", bound=Any)
Activation = Literal["none", "sigmoid", "softmax"]
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

    def apply(
        self, image: Image, shape: InputShape, dtype: npt.DTypeLike = np.float32
    ) -> npt.NDArray[Any]:
        """The image H x W x C as ch x H x W or H x W x ch of ``dtype``."""
        pixels: npt.NDArray[Any] = fitted(image, shape)
        channels = pixels.shape[2]
        if dtype != np.uint8:
            for name, given in (("mean", self.mean), ("std", self.std)):
                if len(given) not in (1, channels):
                    raise InputError(
                        f"{name}: expected one number, or {channels} (one per channel), got "
                        f"{len(given)}"
                    )
            pixels = ((pixels / 255 - np.array(self.mean)) / np.array(self.std)).astype(dtype)
        return np.ascontiguousarray(pixels.transpose(2, 0, 1) if shape.channels_first else pixels)


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


def batches(
    prompts: Sequence[Prompt], size: int, tensor: Callable[[Prompt], T]
) -> Iterator[tuple[Sequence[Prompt], Sequence[T]]]:
    """Prompts and their tensors, at most ``size`` at a time and all of one shape, in order."""
    for start in range(0, len(prompts), size):
        pairs = [(prompt, tensor(prompt)) for prompt in prompts[start : start + size]]
        for _, group in groupby(pairs, key=lambda pair: pair[1].shape):
            alike, tensors = zip(*group, strict=True)
            yield alike, tensors


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
            for concept in prompt.concepts:
                check_known("concept", concept, self.concepts, "model.concepts")
            row = row[[self.concepts.index(concept) for concept in prompt.concepts]]
        if row.ndim == 1 or prompt.image is None:
            return row
        if len(row) != len(prompt.concepts):
            raise ModelError(f"{who}: expected {len(prompt.concepts)} maps, got {len(row)}")
        import cv2

        height, width = prompt.image.shape[:2]
        maps = [cv2.resize(m, (width, height), interpolation=cv2.INTER_LINEAR) for m in row]
        return np.stack(maps).clip(0, 1)


class TensorModel(ModelDefaults):
    """A model that takes one tensor, an image, and gives others, one of which is read.

    ``concepts``, ``activation``: see `Outputs`; ``mean``, ``std``: see `Preprocessing`.
    """

    def __init__(
        self,
        *,
        output: Annotated[str | None, Option("the output to read, where there are several")] = None,
        concepts: Annotated[
            Sequence[str] | None,
            Option("what the output's columns are (default: the dataset's, in order)"),
        ] = None,
        activation: Annotated[Activation, Option("what makes P(yes) of the output")] = "none",
        mean: Pixels = (0.0,),
        std: Pixels = (1.0,),
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._output = output
        self._outputs = Outputs(None if concepts is None else tuple(concepts), activation)
        self._preprocessing = Preprocessing(tuple(mean), tuple(std))

    def _output_among(self, names: Sequence[str], where: str) -> str:
        """The output that is read; raises InputError where there is none of its name."""
        if self._output is None and len(names) != 1:
            raise InputError(f"{where}: expected model.output, one of {', '.join(names) or 'none'}")
        check_known("output", self._output or names[0], names, where)
        return self._output or names[0]


def activated(output: npt.NDArray[Any], activation: Activation) -> npt.NDArray[Any]:
    """n x C ..., a softmax over C."""
    from scipy.special import expit, softmax

    if activation == "sigmoid":
        return np.asarray(expit(output))
    # rounding must not lift a probability above 1
    return output if activation == "none" else np.asarray(softmax(output, axis=1).clip(0, 1))


ClassNames = Mapping[str, str | Sequence[str]]
"""Concept -> the model's class of it, or several that count as it."""
ClassNamesOption = Annotated[
    ClassNames | None, Option("concept -> class or classes of it (default: the one of its name)")
]
Device = Annotated[str, Option("cpu, cuda or cuda:1; auto is CUDA where there is one")]


class Classes:
    """Which of a model's classes each concept is.

    ``names``: concept -> class or classes; a concept that is not there is the class of its own
    name, whatever its case, spaces, hyphens and underscores. Raises InputError for unknown classes.
    """

    def __init__(self, labels: Sequence[str], names: ClassNames, who: str) -> None:
        self._labels, self._who = tuple(labels), who
        self._places = {_plain(label): place for place, label in enumerate(labels)}
        self._named = {
            c: self._places_of([n] if isinstance(n, str) else n) for c, n in names.items()
        }

    def __repr__(self) -> str:
        return f"Classes({self._labels}, {self._named})"

    def __len__(self) -> int:
        """How many classes the model has."""
        return len(self._labels)

    def of(self, concept: str) -> list[int]:
        """The places of a concept's classes among the model's."""
        if concept not in self._named:
            self._named[concept] = self._places_of([concept])
        return self._named[concept]

    def likely(self, row: npt.NDArray[Any], concept: str, activation: Activation) -> float:
        """P(yes) of a concept, of the probabilities of all classes, shape (C,).

        Of several classes that are one concept, a softmax is summed, else the largest counts.
        """
        likely = row[self.of(concept)]
        return float(min(likely.sum(), 1.0) if activation == "softmax" else likely.max())

    def _places_of(self, names: Sequence[str]) -> list[int]:
        for name in names:
            if _plain(name) not in self._places:
                error = unknown("class", name, self._labels, f"model {self._who!r}")
                raise InputError(f"{error}; class_names in [model] says which class a concept is")
        return [self._places[_plain(name)] for name in names]


def _plain(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())


IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Mean and std of ImageNet's pixels in 0..1, by which most networks were trained."""


@dataclass(frozen=True)
class Preset:
    """How images become the input of a torch network, as torchvision has it.

    They are resized, cut and scaled: (pixel / 255 * white - mean) / std by channel. A crop is black
    where the image is smaller.
    """

    mean: Annotated[Sequence[float] | None, Option("of pixels in 0..white")] = None
    std: Annotated[Sequence[float] | None, Option("of pixels in 0..white")] = None
    size: Annotated[
        int | Sequence[int] | None,
        Option(
            "what images are resized to: their shorter side, or [height, width] (default: as "
            "they are)"
        ),
    ] = None
    crop: Annotated[
        Sequence[int] | None,
        Option("[height, width] of the middle that is cut out then; classifiers alone"),
    ] = None
    interpolation: Annotated[
        Literal["nearest", "bilinear", "bicubic"], Option("of what is resized")
    ] = "bilinear"
    white: Annotated[float, Option("what a white pixel is before mean and std, 1 or 255", gt=0)] = (
        1.0
    )
    channels: Annotated[int, Option("of its input, 3 or 1", ge=1, le=3)] = 3

    def __post_init__(self) -> None:
        for name, numbers in (("mean", self.mean), ("std", self.std)):
            if numbers is not None and len(numbers) not in (1, self.channels):
                raise InputError(
                    f"model.{name}: expected one number, or {self.channels} (one per channel), "
                    f"got {len(numbers)}"
                )
        if self.std is not None and not all(s > 0 for s in self.std):
            raise InputError(f"model.std: expected numbers above 0, got {list(self.std)}")
        for name, sides in (("size", self.size), ("crop", self.crop)):
            both = [sides] if isinstance(sides, int) else list(sides or [1])
            if len(both) > 2 or (name == "crop" and sides and len(both) != 2) or min(both) < 1:
                raise InputError(f"model.{name}: expected [height, width] in pixels, got {sides!r}")

    @property
    def sides(self) -> tuple[int, int] | None:
        """Height and width that every input has; None where they follow from the image's."""
        sides = self.crop or self.size
        return None if sides is None or isinstance(sides, int) else (sides[0], sides[1])

    def __call__(self, image: Image) -> "torch.Tensor":
        """An image H x W x C as ch x h x w, float32."""
        import torch

        pixels = fitted(image, InputShape(None, self.channels, None, None, channels_first=False))
        pixels = self._resized(pixels)
        if self.crop is not None:
            pixels = _middle(pixels, *self.crop)
        mean, std = np.array(self.mean or 0.0), np.array(self.std or 1.0)
        planes = ((pixels / 255 * self.white - mean) / std).transpose(2, 0, 1)
        return torch.from_numpy(planes.astype(np.float32))

    def _resized(self, pixels: Image) -> Image:
        from PIL import Image as Pillow

        height, width = pixels.shape[:2]
        if isinstance(self.size, int):
            shorter = min(height, width)
            height, width = self.size * height // shorter, self.size * width // shorter
        elif self.size is not None:
            height, width = self.size
        if (height, width) == pixels.shape[:2]:
            return pixels
        how = Pillow.Resampling[self.interpolation.upper()]
        picture = Pillow.fromarray(pixels[:, :, 0] if self.channels == 1 else pixels)
        return np.asarray(picture.resize((width, height), how)).reshape(height, width, -1)


def _middle(pixels: Image, height: int, width: int) -> Image:
    """The middle of an image, black where that reaches beyond it."""
    above, left = (
        max(0, side - length)
        for side, length in zip((height, width), pixels.shape[:2], strict=True)
    )
    # of an odd number of black lines, the further one stands behind the image
    borders = ((above // 2, above - above // 2), (left // 2, left - left // 2), (0, 0))
    pixels = np.pad(pixels, borders)
    top, start = round((pixels.shape[0] - height) / 2), round((pixels.shape[1] - width) / 2)
    return pixels[top : top + height, start : start + width]
