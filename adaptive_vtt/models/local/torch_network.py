"""A network of the user's own, from a folder with a hubconf.py: P(yes) and masks of concepts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import numpy.typing as npt

from ...datasets.base import Dataset, adapted_dataset
from ...errors import AvttError, InputError, ModelError, check_known, listed, one_line, unknown
from ...types import Answer, Image, Prompt, Unanswered
from ...utils.options import Group, Option, at_base
from ...utils.other_code import place_of
from ..base import ModelDefaults
from ..checking import image_of
from .parameters import hash_of, load_parameters
from .tensors import Activation, InputShape, activated, batches, fitted

if TYPE_CHECKING:
    import torch


ClassNames = Mapping[str, str | Sequence[str]]
"""Concept -> the model's class of it, or several that count as it."""


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


class TorchNetwork(ModelDefaults):
    """A network whose output is n x C, of a classifier, or n x C x h x w, of a segmenter.

    P(yes) of a concept is the probability of its classes. Its mask is where one of them is the
    likeliest of all (softmax), or above one half (else), once the output was brought to the size of
    the image.

    Raises InputError for options that cannot be; where every input has one size, the network is
    asked once about a black image, which shows what else does not fit.
    """

    answers = "all"

    def __init__(
        self,
        module: "torch.nn.Module",
        prepare: Preset,
        name: str,
        *,
        classes: Annotated[Sequence[str], Option("the names of its outputs, in their order")],
        class_names: Annotated[
            ClassNames | None,
            Option("concept -> class or classes of it (default: the one of its name)"),
        ] = None,
        activation: Annotated[
            Activation | None,
            Option(
                "what makes probabilities of its output (default: a sigmoid of one class, a "
                "softmax of several)"
            ),
        ] = None,
        output: Annotated[
            int | str | None,
            Option("which of several outputs is read, by number (-1 is the last) or name"),
        ] = None,
        batch_size: Annotated[int, Option("images at a time", ge=1)] = 16,
        device: Annotated[
            str, Option("cpu, cuda or cuda:1; auto is CUDA where there is one")
        ] = "auto",
    ) -> None:
        from ...utils.devices import pick

        self.name = name
        self._classes = Classes(classes, class_names or {}, name)
        several = len(self._classes) > 1
        self._activation: Activation = activation or ("softmax" if several else "sigmoid")
        self._output, self._batch = output, batch_size
        self._device = pick(device)
        self._module, self._prepare = module.to(self._device).eval(), prepare
        self._use = repr((self._prepare, self._classes, self._activation, output))
        self._check()

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Answers in the order of the prompts; a batch holds images of one size."""
        import torch

        def tensor(prompt: Prompt) -> torch.Tensor:
            return self._prepare(image_of(prompt, f"model {self.name!r}"))

        answers: list[Answer | Unanswered] = []
        with torch.inference_mode():
            for alike, tensors in batches(prompts, self._batch, tensor):
                outputs = self._outputs(torch.stack(tuple(tensors)))
                answers += [self._answer(*pair) for pair in zip(outputs, alike, strict=True)]
        return answers

    def content(self) -> str:
        """A short hash of the parameters, the preprocessing and how the output is read."""
        return hash_of(self._module, self._use)

    def check_concept(self, concept: str) -> None:
        """Raises InputError where no class is known of the concept."""
        self._classes.of(concept)

    def _check(self) -> None:
        if len(self._classes) == 1 and self._activation == "softmax":
            raise InputError(
                f"model {self.name!r}: expected activation = 'sigmoid' or 'none' for a single "
                "class, got 'softmax', which is 1 whatever the network says"
            )
        sides = self._prepare.sides
        if sides is not None and self._tried(*sides).ndim == 4 and self._prepare.crop:
            raise InputError(
                f"model {self.name!r}: expected a segmenter without crop, as its maps must cover "
                "the image; say size = [height, width] in [model]"
            )

    def _tried(self, height: int, width: int) -> "torch.Tensor":
        """The output for a black image; random numbers go on as if nothing had been asked."""
        import torch

        devices = [self._device] if self._device.type == "cuda" else []
        try:
            with torch.random.fork_rng(devices), torch.inference_mode():
                black = np.zeros((height, width, self._prepare.channels), np.uint8)
                return self._outputs(self._prepare(black)[None])
        except AvttError as error:
            raise InputError(str(error)) from None
        except Exception as error:  # other people's networks, and images too large for memory
            raise InputError(
                f"model {self.name!r}: expected a network that takes inputs of "
                f"{(height, width)}, as size and crop in [model] make them, got "
                f"{type(error).__name__}: {one_line(error)[:200]}"
            ) from error

    def _outputs(self, images: "torch.Tensor") -> "torch.Tensor":
        """The output n x C or n x C x h x w. Raises ModelError for others."""
        output = self._picked(self._module(images.to(self._device)))
        count, number = len(self._classes), len(images)
        if count == 1 and output.ndim in (1, 3):
            output = output[:, None]
        if output.ndim not in (2, 4) or output.shape[:2] != (number, count):
            raise ModelError(
                f"model {self.name!r}: expected an output of shape ({number}, {count}) or "
                f"({number}, {count}, height, width), as classes are {count}, got "
                f"{tuple(output.shape)}"
            )
        return output.float().cpu()

    def _picked(self, outputs: Any) -> "torch.Tensor":
        """The one output that is read; raises InputError where that is no tensor."""
        import torch

        picked, wrong = outputs, ""
        if self._output is not None:
            try:
                picked = outputs[self._output]
            except (KeyError, IndexError, TypeError) as error:
                picked, wrong = outputs, f"; {self._output!r} is none: {one_line(error)}"
        if isinstance(picked, torch.Tensor) and not wrong:
            return picked
        if isinstance(picked, Mapping):
            got = f"outputs by name, {listed(picked)}"
        elif isinstance(picked, Sequence):
            shapes = ", ".join(str(tuple(getattr(one, "shape", ()))) for one in picked)
            got = f"{len(picked)} outputs, of shapes {shapes}"
        else:
            got = type(picked).__name__
        raise InputError(
            f"model {self.name!r}: expected output in [model], which of its outputs to read, as it "
            f"gives {got}{wrong}"
        )

    def _answer(self, output: "torch.Tensor", prompt: Prompt) -> Answer:
        from torch.nn.functional import interpolate

        if output.ndim == 1:
            row = activated(_array(output)[None], self._activation)[0]
            likely = (self._classes.likely(row, c, self._activation) for c in prompt.concepts)
            return Answer(tuple(likely))
        size = image_of(prompt, self.name).shape[:2]
        maps = _array(interpolate(output[None], size, mode="bilinear")[0])
        places = [self._classes.of(concept) for concept in prompt.concepts]
        if self._activation == "softmax":
            likeliest = maps.argmax(0)
            return Answer(tuple(np.isin(likeliest, of) for of in places))
        half = 0.0 if self._activation == "sigmoid" else 0.5
        return Answer(tuple(maps[of].max(0) >= half for of in places))


def torch_network(
    path: Annotated[Path, Option("the folder with a hubconf.py", reads=at_base)],
    *,
    function: Annotated[str, Option("the function in hubconf.py that gives the network")],
    options: Annotated[Mapping[str, Any] | None, Option("arguments of that function")] = None,
    weights: Annotated[
        Path | None,
        Option(
            "the file with its parameters, .safetensors or as torch.save writes a state_dict "
            "(default: as the function loads them)",
            reads=at_base,
        ),
    ] = None,
    preset: Annotated[
        Literal["imagenet"] | None,
        Option("imagenet, for ImageNet's mean and std; else say mean and std"),
    ] = None,
    preprocessing: Annotated[Preset | None, Group(Preset)] = None,
    name: str | None = None,
    dataset: Dataset | None = None,
    **network: Annotated[Any, Group(TorchNetwork)],
) -> TorchNetwork:
    """A network that a function of a folder's hubconf.py gives. Its code is run.

    ``network``: of `TorchNetwork`; ``dataset``: what is asked about, if known. Raises InputError
    where there is no network, where it cannot be used, and for a concept of which no class is
    known.
    """
    prepare = preprocessing or Preset()
    if preset is not None:
        check_known("preset", preset, ["imagenet"], "model.preset")
        mean, std = IMAGENET
        prepare = replace(prepare, mean=prepare.mean or mean, std=prepare.std or std)
    if prepare.mean is None or prepare.std is None:
        raise InputError(
            "model: expected mean and std, got neither or one; preset = 'imagenet' where the "
            "network was trained with ImageNet's, mean = [0], std = [1] where it takes pixels "
            "in 0..1"
        )
    module = _module(path, function, options or {})
    if weights is not None:
        load_parameters(module, weights)
    model = TorchNetwork(module, prepare, name or function, **network)
    model.model_files = () if weights is None else (weights,)
    for concept in [] if dataset is None else adapted_dataset(dataset).asked[0]:
        model.check_concept(concept)
    return model


def _module(path: Path, function: str, options: Mapping[str, Any]) -> "torch.nn.Module":
    import torch

    file = path / "hubconf.py"
    if not file.is_file():
        raise InputError(f"model.path: expected a folder with a hubconf.py, got {str(path)!r}")
    load: Any = torch.hub.load
    who = f"model {function!r} of {str(file)!r}"
    try:
        module = load(str(path), function, source="local", **options)
    except (Exception, SystemExit) as error:  # other people's code may fail in any way
        raise InputError(
            f"{who}: cannot be made: {type(error).__name__}: {one_line(error)[:200]}"
            f"{place_of(error)}"
        ) from error
    if not isinstance(module, torch.nn.Module):
        raise InputError(
            f"{who}: expected a torch module, got {type(module).__name__}; a callable is a model "
            "of kind = 'python'"
        )
    return module


def _array(tensor: "torch.Tensor") -> npt.NDArray[Any]:
    return np.asarray(tensor.double().numpy())
