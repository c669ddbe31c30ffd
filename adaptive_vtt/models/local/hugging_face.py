"""Models of Hugging Face's transformers: from a folder, or from what its cache holds.

Models and their processors are used directly, not through ``transformers.pipeline``: pipelines give
no logits, and those for visual questions and for captions are gone from transformers 5.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from ...errors import InputError, one_line, unknown
from ...types import Answer, Image, Prompt, Unanswered
from ...utils.importing import pip_install
from ...utils.options import Option
from ..base import ModelDefaults
from ..checking import image_of
from .parameters import hash_of

if TYPE_CHECKING:
    import torch

Task = Literal[
    "image-classification",
    "image-segmentation",
    "visual-question-answering",
    "image-to-text",
    "image-text-to-text",
]
"""What a model does, in the hub's words; "image-text-to-text" is a chat model that sees."""
Precision = Literal["float32", "float16", "bfloat16"]
BatchSize = Annotated[int, Option("images at a time (default: 16; image-text-to-text: 4)", ge=1)]
MaxTokens = Annotated[int, Option("longest reply", ge=1)]

_AUTO: Mapping[str, tuple[str, ...]] = {
    "image-classification": ("AutoModelForImageClassification",),
    "image-segmentation": (
        "AutoModelForSemanticSegmentation",
        "AutoModelForUniversalSegmentation",
        "AutoModelForImageSegmentation",
    ),
    "visual-question-answering": ("AutoModelForVisualQuestionAnswering",),
    "image-to-text": ("AutoModelForImageTextToText",),
    "image-text-to-text": ("AutoModelForImageTextToText",),
}
"""The classes of transformers that load a task's models, in the order in which they are tried."""


@dataclass(frozen=True)
class Source:
    """Where a model is, and how it is to run.

    ``path``: a folder that ``save_pretrained`` wrote, or a name on the hub; with
    ``local_files_only`` (the default) a name is looked up in the user's own cache alone, and
    nothing is fetched. ``revision``: a branch, tag or commit of the hub. ``device``: "auto" is
    CUDA where there is one. Code that a model brings along is never run.
    """

    path: str
    revision: str | None = None
    local_files_only: bool = True
    device: str = "auto"
    precision: Precision = "float32"

    def load(self, task: str) -> "Loaded":
        """The model and its processor. Raises InputError where there is none that does ``task``."""
        if task not in _AUTO:
            raise unknown("task", task, _AUTO, "model.task")
        try:
            import transformers
        except ImportError:
            raise InputError(
                f"kind = 'transformers' needs transformers: {pip_install('transformers')}"
            ) from None
        import torch

        from ...utils.devices import pick

        kinds = [getattr(transformers, name) for name in _AUTO[task]]
        config = self._read(transformers.AutoConfig)
        fitting = [kind for kind in kinds if type(config) in kind._model_mapping]
        if not fitting:
            raise InputError(
                f"model {self.path!r}: is of the type {config.model_type!r}, which transformers "
                f"cannot use for the task {task!r}; expected another task, one of "
                f"{', '.join(name for name in _AUTO if name != task)}"
            )
        with _no_bars(transformers.utils.logging):
            model = self._read(fitting[0], dtype=getattr(torch, self.precision))
        return Loaded(model.to(pick(self.device)).eval(), self._read(transformers.AutoProcessor))

    def _read(self, kind: Any, **options: Any) -> Any:
        options |= {"local_files_only": self.local_files_only, "trust_remote_code": False}
        if self.revision is not None:
            options["revision"] = self.revision
        try:
            with _offline(self.local_files_only):
                return kind.from_pretrained(self.path, **options)
        except ImportError as error:  # transformers says which library is missing
            raise InputError(f"model {self.path!r}: {one_line(error)[:300]}") from None
        except (OSError, ValueError, KeyError) as error:
            raise self._unusable(error) from None

    def _unusable(self, error: Exception) -> InputError:
        if Path(self.path).is_dir():
            return InputError(
                f"model {self.path!r}: expected a folder that save_pretrained wrote, with model "
                f"and processor: {one_line(error)[:200]}"
            )
        if not self.local_files_only:
            return InputError(f"model {self.path!r}: {one_line(error)[:200]}")
        return InputError(
            f"model {self.path!r}: is no folder, and Hugging Face's cache on this machine does not "
            f"hold it; 'hf download {self.path}' fetches it, or local_files_only = false in [model]"
        )


@dataclass(frozen=True)
class Loaded:
    """A model on its device, and what turns images and words into its inputs."""

    model: Any
    processor: Any

    @property
    def tokenizer(self) -> Any:
        """What turns words into numbers; None for models without words."""
        return getattr(self.processor, "tokenizer", None)

    def inputs(self, **given: Any) -> dict[str, Any]:
        """What the processor makes of images and words, on the model's device."""
        return self.moved(self.processor(return_tensors="pt", **given))

    def moved(self, made: Mapping[str, Any]) -> dict[str, Any]:
        """Inputs on the model's device, numbers in its precision."""
        import torch

        to = {"device": self.model.device}
        return {
            name: part.to(dtype=self.model.dtype, **to)
            if part.is_floating_point()
            else part.to(**to)
            for name, part in made.items()
            if isinstance(part, torch.Tensor)
        }


@contextmanager
def _offline(wanted: bool) -> Iterator[None]:
    """No request to the hub, where that is ``wanted``: with ``local_files_only`` alone its library
    still asks for other things, such as a list of programs that may be calling it."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or wanted
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


@contextmanager
def _no_bars(logging: Any) -> Iterator[None]:
    """No bars of transformers' own, which would stand among those of the audit."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


class TransformersModel(ModelDefaults):
    """What the models of all tasks have alike; a subclass says its ``task``, and gives ``_answers``
    of one batch.

    ``batch_size``: how many images are in memory at a time.
    """

    task: ClassVar[Task]

    def __init__(
        self, source: Source, *, name: str | None = None, batch_size: BatchSize = 16
    ) -> None:
        self.name = name or Path(source.path).name
        self.batch_size = batch_size
        self._loaded = source.load(self.task)

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        import torch

        answers: list[Answer | Unanswered] = []
        with torch.inference_mode():
            for start in range(0, len(prompts), self.batch_size):
                answers += self._answers(prompts[start : start + self.batch_size])
        return answers

    def _answers(self, prompts: Sequence[Prompt]) -> Sequence[Answer | Unanswered]:
        raise TypeError(f"{type(self).__name__} defines no _answers")

    def content(self) -> str:
        """A short hash of the parameters."""
        return hash_of(self._loaded.model)


def pictures(prompts: Sequence[Prompt], who: str) -> list[Any]:
    """The prompts' images as PIL images in RGB, which every processor takes.

    Raises InputError for a prompt without one.
    """
    from PIL import Image as Pillow

    return [Pillow.fromarray(_rgb(image_of(prompt, f"model {who!r}"))) for prompt in prompts]


def _rgb(image: Image) -> Image:
    return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image


def as_array(tensor: "torch.Tensor") -> np.ndarray[Any, Any]:
    """A tensor as an array of doubles."""
    return np.asarray(tensor.double().cpu().numpy())
