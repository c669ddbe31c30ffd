"""Models in Python: callables, torch modules, names of either, and files of trained models."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from ...errors import InputError, ModelError, check_known, one_line, unknown
from ...types import Answer, CallMode, Image, Prompt, Unanswered
from ...utils.importing import is_table
from ...utils.options import Option
from ...utils.other_code import load_object
from ..base import ModelDefaults, ModelSource, ModelUnderTest
from ..checking import to_answers, without_torch
from .files import ENDINGS, hash_of, is_script, lines
from .tensors import Activation, activated

if TYPE_CHECKING:
    import torch

Output = Literal["probabilities", "logits", "class-logits"]
"""Kind of a model's numbers: P(yes), logits of labels, or logits of mutually exclusive classes."""
_ACTIVATIONS: dict[Output, Activation] = {
    "probabilities": "none",
    "logits": "sigmoid",
    "class-logits": "softmax",
}
TARGET = (
    "'file.py:name' or 'package.module:name'; a callable from a list of H x W x C uint8 images to "
    "n x C of P(yes), masks n x C x H x W, or n captions"
)
OUTPUT = (
    "what the numbers are; logits by a sigmoid, or, if an oracle takes the likeliest class, by a "
    "softmax (default: probabilities of callables, logits of torch modules)"
)


class PythonModel(ModelDefaults):
    """A function from images to answers.

    Args:
        function: Takes a list of n images, H x W x 3 (or 1) of uint8. A classifier returns P(yes),
            an array n x C for C concepts (or n numbers for a single one), or n names of classes. A
            segmenter returns masks of bool or of P(yes), n x C x H x W, or n arrays C x H x W. A
            captioner returns n texts.
        name: Name in errors, journals and reports. Default None: the function's.
        output: Kind of the numbers; logits are turned into P(yes).

    Raises:
        InputError: ``output`` is unknown.
    """

    answers: CallMode = "all"
    unnamed_columns = True

    def __init__(
        self,
        function: Callable[[list[Image]], Any],
        name: str | None = None,
        *,
        output: Output = "probabilities",
    ) -> None:
        check_known("value", output, _ACTIVATIONS, "output")
        self.activation = _ACTIVATIONS[output]
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        images = [prompt.image for prompt in prompts if prompt.image is not None]
        who = f"model {self.name!r}"
        returned = _one_hot(without_torch(self._returned(images)), prompts, who)
        if self.activation != "none":
            try:
                returned = self._probabilities(returned)
            except (TypeError, ValueError) as error:
                got = f"{type(returned).__name__} ({one_line(error)})"
                raise ModelError(
                    f"{who}: expected logits, an array of numbers, got {got}"
                ) from None
        return [*to_answers(returned, prompts, who)]

    def _returned(self, images: list[Image]) -> Any:
        """Return the output for a list of images."""
        return self.function(images)

    def _probabilities(self, logits: Any) -> Any:
        """Return P(yes) for logits n x C or n x C x H x W, or a list of n arrays C x H x W."""
        if isinstance(logits, list) and {np.ndim(masks) for masks in logits} == {3}:
            arrays = [np.asarray(masks, float)[None] for masks in logits]  # sizes may differ
            return [activated(array, self.activation)[0] for array in arrays]
        return activated(np.asarray(logits, float), self.activation)


class TorchModel(PythonModel):
    """A torch module from images n x ch x H x W to logits n x C, or n x C x H x W.

    Args:
        module: The module, which is put into eval mode. It takes float32 in [0, 1].
        name: Name in errors, journals and reports. Default None: the module's class.
        device: The device; "auto": CUDA if it is available, else the CPU.
        batch_size: Images at a time, all of one size. It is halved, for good, whenever a batch does
            not fit into the GPU's memory.
        transform: Function from a list of images to a tensor n x ch x H x W. Default None: uint8 is
            scaled to [0, 1].
        output: Kind of the numbers.

    Raises:
        InputError: ``output`` or ``device`` is unknown.
    """

    def __init__(
        self,
        module: "torch.nn.Module",
        *,
        name: str | None = None,
        device: str = "auto",
        batch_size: int = 64,
        transform: Callable[[list[Image]], "torch.Tensor"] | None = None,
        output: Output = "logits",
    ) -> None:
        from ...utils.devices import pick

        super().__init__(module, name or type(module).__name__, output=output)
        self.device = pick(device)
        self.module = module.to(self.device).eval()
        self.batch_size, self.transform = batch_size, transform or _scaled

    def _returned(self, images: list[Image]) -> Any:
        import torch

        outputs: list[torch.Tensor] = []
        done = 0
        with torch.inference_mode():
            while done < len(images):
                batch = images[done : done + self.batch_size]
                try:
                    inputs = self.transform(batch).to(self.device)
                    outputs.append(self.module(inputs).double().cpu())
                    done += len(batch)
                    continue
                except torch.OutOfMemoryError:
                    if len(batch) == 1:
                        raise
                # outside the except block, as the exception keeps the batch in memory
                self.batch_size = len(batch) // 2
                torch.cuda.empty_cache()
        return torch.cat(outputs).numpy()

    def content(self) -> str:
        """Return a short hash of the parameters, which further training changes."""
        return hash_of(self.module)


def _scaled(images: list[Image]) -> "torch.Tensor":
    """Return images H x W x C uint8 as one float tensor n x C x H x W in [0, 1]."""
    import torch

    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float().div_(255.0)


def _one_hot(returned: Any, prompts: Sequence[Prompt], who: str) -> Any:
    """Return n x C of 0 and 1 for n names of classes, and anything else unchanged.

    Raises:
        ModelError: A name is none of the concepts.
    """
    concepts = prompts[0].concepts
    rows = returned if isinstance(returned, list | tuple | np.ndarray) else []
    names = [str(name) for name in rows if isinstance(name, str)]
    if prompts[0].asks or not names or len(names) != len(prompts):
        return returned
    for name in names:
        if name not in concepts:
            raise ModelError(str(unknown("class", name, concepts, who)))
    return np.array([[float(concept == name) for concept in concepts] for name in names])


class TextModel(ModelDefaults):
    """A model of text, such as a judge of replies.

    Args:
        function: Takes a list of n texts and returns n texts.
        name: Name in errors, journals and reports. Default None: the function's.
        price: Price of each text.
    """

    answers: CallMode = "one"
    needs_image = False

    def __init__(
        self,
        function: Callable[[list[str]], Sequence[str]],
        name: str | None = None,
        *,
        price: float = 0.0,
    ) -> None:
        self.function = function
        self.most_cost = self.price = price
        self.name = name or str(getattr(function, "__name__", type(function).__name__))

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        replies = self.function(["\n".join(ask.text for ask in prompt.asks) for prompt in prompts])
        texts = [replies] if isinstance(replies, str) else list(replies)
        if len(texts) != len(prompts) or not all(isinstance(text, str) for text in texts):
            raise ModelError(
                f"model {self.name!r}: expected a list of {len(prompts)} texts, got {replies!r:.80}"
            )
        return [Answer((text,), self.price) for text in texts]


class ByHand(ModelDefaults):
    """Placeholder for the model of an audit whose calls are answered through ``Audit.tell``."""

    name = "by hand"
    needs_image = False
    takes_words = True

    def __init__(self, answers: CallMode) -> None:
        self.answers = answers

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        remedy = "take calls from `ask`, and pass the answer of each to `tell`"
        raise InputError(f"run: expected an audit with a model to run, got one by hand: {remedy}")


def load(
    target: Annotated[str, Option(TARGET)],
    *,
    base: Path | None = None,
    output: Annotated[Output | None, Option(OUTPUT)] = None,
) -> ModelUnderTest:
    """Return a named object of a user's code as a model.

    Args:
        target: Name of a callable, a torch module, or an object with ``ask``: "file.py:name" or
            "package.module:name".
        base: Folder of relative files. Default None: the working folder.
        output: Kind of the numbers of a callable or torch module. Default None: probabilities of a
            callable, logits of a torch module.

    Raises:
        InputError: No object has that name, or it is no model.
    """
    return as_model(load_object(target, base), target, output)


def as_model(source: Any, target: str, output: Output | None = None) -> ModelUnderTest:
    """Return an object as a model.

    Args:
        source: A callable, a torch module, or an object with ``ask``.
        target: Its name.
        output: As in ``load``.

    Raises:
        InputError: The object is no model, or ``output`` does not apply to it.
    """
    expected = f"model {target!r}: expected a callable, a torch module or an object with 'ask'"
    if isinstance(source, type):
        name = source.__name__
        remedy = f"name an object made of it, {name}(...), or say kind = {target!r}"
        raise InputError(f"{expected}, got the class {name}; {remedy}")
    if hasattr(source, "ask"):
        if output is not None:
            raise InputError(
                f"model {target!r}: expected output for a callable or a torch module, got it for "
                "an object whose 'ask' gives answers; leave it out"
            )
        return source
    torch = sys.modules.get("torch")  # a torch module cannot exist before torch is imported
    if torch is not None and isinstance(source, torch.nn.Module):
        return TorchModel(source, name=target, output=output or "logits")
    if callable(source):
        return PythonModel(source, name=target, output=output or "probabilities")
    remedy = "for a table of answers say kind = 'recorded'"
    if hasattr(source, "predict_proba"):
        remedy = (
            "nothing here defines how its rows are made of images: wrap it in a function, lambda "
            "images: estimator.predict_proba([image.ravel() / 255 for image in images])"
        )
    raise InputError(f"{expected}, got {type(source).__name__}; {remedy}")


def model_of(source: ModelSource) -> ModelUnderTest:
    """Return any source of a model as a model.

    Args:
        source: An object with ``ask``, a torch module (images -> logits), any other callable
            (list of images -> n x C of P(yes), or n names of classes), or a DataFrame of recorded
            answers. A text is the name of any of these, ``file.py:name`` or
            ``package.module:name``, or an ONNX or TorchScript file.

    Raises:
        InputError: The source is something else, such as a class, or a file whose opening would run
            a program in it; the message then has the code that opens such a file.
    """
    if is_table(source):
        from .recorded import Recorded

        return Recorded(source)
    if not isinstance(source, str):
        return as_model(source, str(getattr(source, "__name__", type(source).__name__)))
    path = Path(source)
    if path.suffix not in ENDINGS:
        return load(source)
    if not path.is_file():
        raise InputError(f"model: file {source!r} does not exist")
    if path.suffix == ".onnx":
        from .onnx import OnnxModel

        return OnnxModel(path)
    if is_script(path):
        import torch

        network = torch.jit.load(str(path), map_location="cpu")  # type: ignore[no-untyped-call]
        model = TorchModel(network, name=path.name)
        model.model_files = (path,)
        return model
    raise InputError(
        f"model: expected a model, got a file {source!r} that is a program to whoever opens it; "
        f"wrap it yourself, and give the result:\n\n{lines(path, repr(source), 2)}"
    )
