"""A user's torch network, made by a function in a hubconf.py, as a model of concepts.

Unlike `python.TorchModel`, it has options for the preprocessing, and maps the network's classes
to the concepts of an audit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from ...datasets.base import Dataset, adapted_dataset
from ...errors import AvttError, InputError, ModelError, check_known, listed, one_line, unknown
from ...types import Answer, Image, Prompt, Unanswered
from ...utils.options import Group, Option, at_base
from ...utils.other_code import place_of
from ..base import ModelDefaults
from ..checking import image_of
from .files import hash_of, load_parameters
from .tensors import Activation, activated, batches, fitted

if TYPE_CHECKING:
    import torch


ClassNames = Mapping[str, str | Sequence[str]]
"""Concept -> the model's class for it, or several classes that each mean it."""

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Mean and standard deviation of ImageNet's pixels in [0, 1], for red, green and blue."""


def _plain(name: str) -> str:
    """Return the name of a class without case, hyphens and underscores."""
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())


@dataclass(frozen=True)
class Preset:
    """Conversion of images to the input of a torch network, as torchvision does it.

    Images are resized, cropped, and scaled to (pixel / 255 - mean) / std for each channel.

    Attributes:
        mean: Mean of pixels in [0, 1], one number or one per channel.
        std: Standard deviation of pixels in [0, 1], above 0, one number or one per channel.
        size: Size after resizing: the shorter side, or [height, width]. None: unchanged.
        crop: [height, width] of the centre that is cut out; pixels beyond the image are black.
        interpolation: Method of resizing.
        channels: 3 or 1.

    Raises:
        InputError: A number is out of range, or a list has another length.
    """

    mean: Annotated[Sequence[float] | None, Option("of pixels in 0..1")] = None
    std: Annotated[Sequence[float] | None, Option("of pixels in 0..1")] = None
    size: Annotated[
        int | Sequence[int] | None,
        Option("size of resized images: shorter side, or [height, width] (default: as is)"),
    ] = None
    crop: Annotated[
        Sequence[int] | None, Option("[height, width] cut out of the middle; for classifiers")
    ] = None
    interpolation: Annotated[
        Literal["nearest", "bilinear", "bicubic"], Option("of what is resized")
    ] = "bilinear"
    channels: Annotated[int, Option("of its input, 3 or 1", ge=1, le=3)] = 3

    def __post_init__(self) -> None:
        for name, numbers in (("mean", self.mean), ("std", self.std)):
            if numbers is not None and len(numbers) not in (1, self.channels):
                expected = f"expected one number, or {self.channels} (one per channel)"
                raise InputError(f"model.{name}: {expected}, got {len(numbers)}")
        if self.std is not None and not all(s > 0 for s in self.std):
            raise InputError(f"model.std: expected numbers above 0, got {list(self.std)}")
        for name, sides in (("size", self.size), ("crop", self.crop)):
            both = [sides] if isinstance(sides, int) else list(sides or [1])
            if len(both) > 2 or (name == "crop" and sides and len(both) != 2) or min(both) < 1:
                raise InputError(f"model.{name}: expected [height, width] in pixels, got {sides!r}")

    @property
    def sides(self) -> tuple[int, int] | None:
        """Height and width of the input; None if they depend on the image."""
        sides = self.crop or self.size
        return None if sides is None or isinstance(sides, int) else (sides[0], sides[1])

    def __call__(self, image: Image) -> "torch.Tensor":
        """Return an image H x W x C as ch x h x w, float32."""
        import torch
        from PIL import Image as Pillow

        pixels = fitted(image, None, None, self.channels)
        picture = Pillow.fromarray(pixels[:, :, 0] if self.channels == 1 else pixels)
        height, width = pixels.shape[:2]
        if isinstance(self.size, int):
            shorter = min(height, width)
            height, width = self.size * height // shorter, self.size * width // shorter
        elif self.size is not None:
            height, width = self.size
        if picture.size != (width, height):
            resampling = Pillow.Resampling[self.interpolation.upper()]
            picture = picture.resize((width, height), resampling)
        if self.crop is not None:
            top, left = _margin(height, self.crop[0]), _margin(width, self.crop[1])
            picture = picture.crop((left, top, left + self.crop[1], top + self.crop[0]))
        pixels = np.asarray(picture).reshape(picture.height, picture.width, -1)
        mean, std = np.array(self.mean or 0.0), np.array(self.std or 1.0)
        planes = ((pixels / 255 - mean) / std).transpose(2, 0, 1)
        return torch.from_numpy(planes.astype(np.float32))


def _margin(side: int, length: int) -> int:
    """Return the position where the middle ``length`` pixels of a side begin, negative if the side
    is shorter."""
    return round((side - length) / 2) if side > length else -((length - side) // 2)


class TorchNetwork(ModelDefaults):
    """A torch network with C classes: a classifier, output n x C, or a segmenter, n x C x h x w.

    P(yes) of a concept is the probability of its classes: their sum under a softmax, else the
    largest. The mask of a concept has the pixels where one of its classes is the likeliest of all
    (softmax), or has a probability of at least 1/2 (else). Before, the output is resized to the
    image.

    Args:
        module: The network, which is put into eval mode.
        prepare: The preprocessing. If it defines the size of inputs, the network is run once on a
            black image, to find options that do not fit.
        name: Name in errors, journals and reports.
        classes: Names of the C classes, in their order.
        class_names: Concept -> class or classes. Default: the class of the same name.
        activation: Function from the output to probabilities. Default None: sigmoid for a single
            class, else softmax.
        output: Number or name of the output that is read, if there are several.
        batch_size: Images at a time.
        device: The device; "auto": CUDA if it is available, else the CPU.

    Raises:
        InputError: A class is unknown, or an option does not fit the network.
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
            ClassNames | None, Option("concept -> class or classes (default: its own name)")
        ] = None,
        activation: Annotated[
            Activation | None,
            Option("from outputs to probabilities (default: sigmoid of one class, else softmax)"),
        ] = None,
        output: Annotated[
            int | str | None,
            Option("which of several outputs is read, by number (-1 is the last) or name"),
        ] = None,
        batch_size: Annotated[int, Option("images at a time", ge=1)] = 16,
        device: Annotated[str, Option("cpu, cuda or cuda:1; auto: CUDA if there is one")] = "auto",
    ) -> None:
        from ...utils.devices import pick

        self.name = name
        self._classes, self._class_names = tuple(classes), dict(class_names or {})
        self._places = {_plain(label): place for place, label in enumerate(classes)}
        for concept in self._class_names:
            self.places(concept)  # raises for an unknown class
        several = len(classes) > 1
        self._activation: Activation = activation or ("softmax" if several else "sigmoid")
        self._output, self._batch = output, batch_size
        self._device = pick(device)
        self._module, self._prepare = module.to(self._device).eval(), prepare
        self._use = repr((prepare, self._classes, self._class_names, self._activation, output))
        if not several and self._activation == "softmax":
            expected = "expected activation = 'sigmoid' or 'none' for a single class"
            raise InputError(f"model {name!r}: {expected}, got 'softmax', which is always 1")
        sides = prepare.sides
        if sides is not None and self._output_of_black(*sides).ndim == 4 and prepare.crop:
            expected = "expected a segmenter without crop, as its maps must cover the image"
            raise InputError(f"model {name!r}: {expected}; say size = [height, width] in [model]")

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Return answers in the order of the prompts; a batch holds images of one size."""
        import torch

        def tensor(prompt: Prompt) -> torch.Tensor:
            return self._prepare(image_of(prompt, f"model {self.name!r}"))

        answers: list[Answer | Unanswered] = []
        with torch.inference_mode():
            for batch, tensors in batches(prompts, self._batch, tensor):
                outputs = self._outputs(torch.stack(tuple(tensors)))
                answers += [self._answer(*pair) for pair in zip(outputs, batch, strict=True)]
        return answers

    def content(self) -> str:
        """Return a short hash of the parameters and of all options that change answers."""
        return hash_of(self._module, self._use)

    def places(self, concept: str) -> list[int]:
        """Return the positions of a concept's classes among the model's.

        A concept without an entry in ``class_names`` is the class of the same name; case, spaces,
        hyphens and underscores do not matter.

        Raises:
            InputError: A class is unknown.
        """
        names = self._class_names.get(concept, concept)
        names = [names] if isinstance(names, str) else names
        for name in names:
            if _plain(name) not in self._places:
                error = unknown("class", name, self._classes, f"model {self.name!r}")
                raise InputError(f"{error}; class_names in [model] maps concepts to classes")
        return [self._places[_plain(name)] for name in names]

    def _output_of_black(self, height: int, width: int) -> "torch.Tensor":
        """Return the output for a black image, and leave torch's random state unchanged.

        Raises:
            InputError: The network fails.
        """
        import torch

        devices = [self._device] if self._device.type == "cuda" else []
        try:
            with torch.random.fork_rng(devices), torch.inference_mode():
                black = np.zeros((height, width, self._prepare.channels), np.uint8)
                return self._outputs(self._prepare(black)[None])
        except AvttError as error:
            raise InputError(str(error)) from None
        except Exception as error:  # an error within the network, or a lack of memory
            size = f"{(height, width)}, as size and crop in [model] make them"
            expected = f"model {self.name!r}: expected a network that takes inputs of {size}"
            got = f"{type(error).__name__}: {one_line(error)[:200]}"
            raise InputError(f"{expected}, got {got}") from error

    def _outputs(self, images: "torch.Tensor") -> "torch.Tensor":
        """Return the output n x C or n x C x h x w; raise ModelError for another shape."""
        output = self._picked(self._module(images.to(self._device)))
        count, number = len(self._classes), len(images)
        if count == 1 and output.ndim in (1, 3):
            output = output[:, None]
        if output.ndim not in (2, 4) or output.shape[:2] != (number, count):
            shapes = f"({number}, {count}) or ({number}, {count}, height, width)"
            expected = f"expected an output of shape {shapes}, as classes are {count}"
            raise ModelError(f"model {self.name!r}: {expected}, got {tuple(output.shape)}")
        return output.float().cpu()

    def _picked(self, outputs: Any) -> "torch.Tensor":
        """Return the output that is read; raise InputError if it is missing or no tensor."""
        import torch

        output, fault = outputs, ""
        if self._output is not None:
            try:
                output = outputs[self._output]
            except (KeyError, IndexError, TypeError) as error:
                fault = f"; {self._output!r} is none: {one_line(error)}"
        if isinstance(output, torch.Tensor) and not fault:
            return output
        if isinstance(output, Mapping):
            got = f"outputs by name, {listed(output)}"
        elif isinstance(output, Sequence):
            shapes = ", ".join(str(tuple(getattr(tensor, "shape", ()))) for tensor in output)
            got = f"{len(output)} outputs, of shapes {shapes}"
        else:
            got = type(output).__name__
        expected = "expected output in [model], which of its outputs to read"
        raise InputError(f"model {self.name!r}: {expected}, as it gives {got}{fault}")

    def _answer(self, output: "torch.Tensor", prompt: Prompt) -> Answer:
        """Return the answer in the output for one image, (C,) or C x h x w."""
        from torch.nn.functional import interpolate

        places = [self.places(concept) for concept in prompt.concepts]
        softmax = self._activation == "softmax"
        if output.ndim == 1:
            p = activated(np.asarray(output.double())[None], self._activation)[0]
            p_yes = (p[own].sum().clip(max=1.0) if softmax else p[own].max() for own in places)
            return Answer(tuple(map(float, p_yes)))
        size = image_of(prompt, self.name).shape[:2]
        maps = np.asarray(interpolate(output[None], size, mode="bilinear")[0].double())
        if softmax:
            likeliest = maps.argmax(0)
            return Answer(tuple(np.isin(likeliest, own) for own in places))
        threshold = 0.0 if self._activation == "sigmoid" else 0.5  # sigmoid(0) = 1/2
        return Answer(tuple(maps[own].max(0) >= threshold for own in places))


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
        Literal["imagenet"] | None, Option("imagenet: ImageNet's mean and std; else give both")
    ] = None,
    preprocessing: Annotated[Preset | None, Group(Preset)] = None,
    name: str | None = None,
    dataset: Dataset | None = None,
    **network: Annotated[Any, Group(TorchNetwork)],
) -> TorchNetwork:
    """Return a network that a function in a hubconf.py makes. The code in that file is run.

    Args:
        path: The folder with the hubconf.py.
        function: Name of the function.
        options: Arguments of the function.
        weights: File of parameters to load. Default None: the function loads them.
        preset: "imagenet" for ImageNet's mean and std. Default None: ``preprocessing`` has both.
        preprocessing: The preprocessing.
        name: Name in errors, journals and reports. Default None: the function's.
        dataset: The dataset of the audit, whose concepts are checked. Default None: unknown.
        **network: Options of `TorchNetwork`.

    Raises:
        InputError: There is no network, it cannot be used, or a concept has no class.
    """
    prepare = preprocessing or Preset()
    if preset is not None:
        check_known("preset", preset, ["imagenet"], "model.preset")
        mean, std = IMAGENET
        prepare = replace(prepare, mean=prepare.mean or mean, std=prepare.std or std)
    if prepare.mean is None or prepare.std is None:
        raise InputError(
            "model: expected mean and std, got neither or one; preset = 'imagenet' where the "
            "network was trained with ImageNet's, mean = [0], std = [1] for pixels in 0..1"
        )
    module = _module(path, function, options or {})
    if weights is not None:
        load_parameters(module, weights)
    model = TorchNetwork(module, prepare, name or function, **network)
    model.model_files = () if weights is None else (weights,)
    for concept in [] if dataset is None else adapted_dataset(dataset).asked[0]:
        model.places(concept)
    return model


def _module(path: Path, function: str, options: Mapping[str, Any]) -> "torch.nn.Module":
    """Return the module that a function in a folder's hubconf.py makes."""
    import torch

    file = path / "hubconf.py"
    if not file.is_file():
        raise InputError(f"model.path: expected a folder with a hubconf.py, got {str(path)!r}")
    load: Any = torch.hub.load
    who = f"model {function!r} of {str(file)!r}"
    try:
        module = load(str(path), function, source="local", **options)
    except (Exception, SystemExit) as error:  # a user's code may fail in any manner
        why = f"{type(error).__name__}: {one_line(error)[:200]}{place_of(error)}"
        raise InputError(f"{who}: cannot be made: {why}") from error
    if not isinstance(module, torch.nn.Module):
        got = type(module).__name__
        raise InputError(f"{who}: expected a torch module, got {got}; kind = 'python' takes others")
    return module
