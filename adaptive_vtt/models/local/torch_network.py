"""Classifiers and segmenters of torch's libraries: P(yes) and masks of the concepts asked about."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt

from ...datasets.base import Dataset, adapted_dataset
from ...errors import AvttError, InputError, ModelError, listed, one_line
from ...types import Answer, Mask, Prompt, Unanswered
from ...utils.options import Group, Option, parameters_of
from ..base import ModelDefaults
from ..checking import image_of
from .parameters import hash_of
from .tensors import Activation, Classes, ClassNamesOption, Device, Preset, activated, batches
from .torch_sources import Chosen, Loaded, Source, load

if TYPE_CHECKING:
    import torch


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
        loaded: Loaded,
        name: str,
        *,
        class_names: ClassNamesOption = None,
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
        device: Device = "auto",
    ) -> None:
        from ...utils.devices import pick

        if loaded.classes is None:
            raise InputError(
                f"model {name!r}: expected classes, the names of its outputs in their order, which "
                "nothing here tells, got none"
            )
        self.name = name
        self._classes = Classes(loaded.classes, class_names or {}, name)
        several = len(self._classes) > 1
        self._activation: Activation = activation or ("softmax" if several else "sigmoid")
        self._output, self._batch = output, batch_size
        self._device = pick(device)
        self._module, self._prepare = loaded.module.to(self._device).eval(), loaded.prepare
        self._use = repr((self._prepare, self._classes, self._activation, output))
        self._check()

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Answers in the order of the prompts; a batch holds images of one size."""
        import torch

        answers: list[Answer | Unanswered] = []
        with torch.inference_mode():
            for alike, tensors in batches(prompts, self._batch, self._tensor):
                said = self._said(torch.stack(tuple(tensors)))
                answers += [self._answer(*each) for each in zip(said, alike, strict=True)]
        return answers

    def content(self) -> str:
        """A short hash of the parameters, the preprocessing and how the output is read."""
        return hash_of(self._module, self._use)

    def check_concepts(self, concepts: Sequence[str]) -> None:
        """Raises InputError for a concept of which no class is known."""
        for concept in concepts:
            self._classes.of(concept)

    def _check(self) -> None:
        if len(self._classes) == 1 and self._activation == "softmax":
            raise InputError(
                f"model {self.name!r}: expected activation = 'sigmoid' or 'none' for a single "
                "class, got 'softmax', which is 1 whatever the network says"
            )
        if not isinstance(self._prepare, Preset) or self._prepare.sides is None:
            return
        if self._tried(self._prepare, *self._prepare.sides).ndim == 4 and self._prepare.crop:
            raise InputError(
                f"model {self.name!r}: expected a segmenter without crop, as its maps must cover "
                "the image; say size = [height, width] in [model]"
            )

    def _tried(self, prepare: Preset, height: int, width: int) -> "torch.Tensor":
        """What is said of a black image; random numbers go on as if nothing had been asked."""
        import torch

        devices = [self._device] if self._device.type == "cuda" else []
        try:
            with torch.random.fork_rng(devices), torch.inference_mode():
                black = np.zeros((height, width, prepare.channels), np.uint8)
                return self._said(prepare(black)[None])
        except AvttError as error:
            raise InputError(str(error)) from None
        except Exception as error:  # other people's networks, and images too large for memory
            raise InputError(
                f"model {self.name!r}: expected a network that takes inputs of "
                f"{(height, width)}, as size and crop in [model] make them, got "
                f"{type(error).__name__}: {one_line(error)[:200]}"
            ) from error

    def _tensor(self, prompt: Prompt) -> "torch.Tensor":
        return self._prepare(image_of(prompt, f"model {self.name!r}"))

    def _said(self, images: "torch.Tensor") -> "torch.Tensor":
        """The output n x C or n x C x h x w. Raises ModelError for others."""
        said = self._picked(self._module(images.to(self._device)))
        if len(self._classes) == 1 and said.ndim in (1, 3):
            said = said[:, None]
        classes = said.ndim in (2, 4) and said.shape[1] == len(self._classes)
        if not classes or len(said) != len(images):
            count = len(self._classes)
            raise ModelError(
                f"model {self.name!r}: expected an output of shape ({len(images)}, {count}) or "
                f"({len(images)}, {count}, height, width), as classes are {count}, got "
                f"{tuple(said.shape)}"
            )
        return said.float().cpu()

    def _picked(self, said: Any) -> "torch.Tensor":
        import torch

        output = self._output
        if output is None and isinstance(said, Mapping) and "out" in said:
            output = "out"  # of torchvision's segmenters, beside the auxiliary one
        if output is not None:
            try:
                said = said[output]
            except (KeyError, IndexError, TypeError) as error:
                raise self._unread(said, f"; {output!r} is none: {one_line(error)}") from None
        if not isinstance(said, torch.Tensor):
            raise self._unread(said, "")
        return said

    def _unread(self, said: Any, more: str) -> InputError:
        if isinstance(said, Mapping):
            got = f"outputs by name, {listed(said)}"
        elif isinstance(said, Sequence):
            shapes = ", ".join(str(tuple(getattr(one, "shape", ()))) for one in said)
            got = f"{len(said)} outputs, of shapes {shapes}"
        else:
            got = type(said).__name__
        return InputError(
            f"model {self.name!r}: expected output in [model], which of its outputs to read, as it "
            f"gives {got}{more}"
        )

    def _answer(self, said: "torch.Tensor", prompt: Prompt) -> Answer:
        from torch.nn.functional import interpolate

        if said.ndim == 1:
            row = activated(_array(said)[None], self._activation)[0]
            of = (self._classes.likely(row, c, self._activation) for c in prompt.concepts)
            return Answer(tuple(of))
        size = image_of(prompt, self.name).shape[:2]
        maps = _array(interpolate(said[None], size, mode="bilinear")[0])
        return Answer(tuple(self._mask(maps, concept) for concept in prompt.concepts))

    def _mask(self, maps: npt.NDArray[Any], concept: str) -> Mask:
        places = self._classes.of(concept)
        if self._activation == "softmax":
            return np.isin(maps.argmax(0), places)
        return maps[places].max(0) >= (0.0 if self._activation == "sigmoid" else 0.5)


def torch_network(
    source: Source,
    *,
    name: str | None = None,
    dataset: Dataset | None = None,
    **given: Annotated[Any, Group(Chosen), Group(TorchNetwork)],
) -> TorchNetwork:
    """A network of timm, torchvision, segmentation-models, MONAI or a hubconf.py, by ``source``.

    ``given``: of `Chosen` and of `TorchNetwork`; ``dataset``: what is asked about, if known. Raises
    InputError where there is none, where it cannot be used, and for a concept of which no class is
    known.
    """
    chosen = Chosen(source, **{n: given.pop(n) for n in parameters_of(Chosen) & given.keys()})
    title = name or chosen.architecture or (chosen.path.name if chosen.path else source)
    network = TorchNetwork(load(chosen), title, **given)
    if dataset is not None:
        network.check_concepts(adapted_dataset(dataset).asked[0])
    return network


def _array(tensor: "torch.Tensor") -> npt.NDArray[Any]:
    return np.asarray(tensor.double().numpy())
