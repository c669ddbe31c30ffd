"""What is made a model without ado: Python callables, torch modules, names of either, nothing."""

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
from .model_files import ENDINGS, is_script, lines
from .parameters import hash_of
from .tensors import Activation, activated

if TYPE_CHECKING:
    import torch

Output = Literal["probabilities", "logits", "class-logits"]
"""What a model's numbers are: P(yes), or what a sigmoid makes P(yes) of, or a softmax over
concepts that are classes."""
_ACTIVATIONS: dict[Output, Activation] = {
    "probabilities": "none",
    "logits": "sigmoid",
    "class-logits": "softmax",
}


class PythonModel(ModelDefaults):
    """``function``: list of n images (H x W x C uint8) -> array n x C of P(yes), or the n names
    of each image's class. Where there is one concept, n numbers will do.

    A segmenter gives masks: n x C x H x W, or n arrays C x H x W, of bool or of P(yes); a
    captioner n texts. ``output`` says what the numbers are where they are not P(yes).
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
        self.activation = activation_of(output)
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        images = [prompt.image for prompt in prompts if prompt.image is not None]
        who = f"model {self.name!r}"
        returned = _of_names(without_torch(self.function(images)), prompts, who)
        if self.activation != "none":
            returned = _numbers(returned, self.activation, who)
        return [*to_answers(returned, prompts, who)]


class TorchModel(ModelDefaults):
    """A torch module: float images n x ch x H x W in [0, 1] -> logits n x C, or n x C x H x W.

    ``output`` says what the numbers are where they are no logits. The module is put into eval
    mode on ``device`` ("auto": CUDA where there is one); images of one call must share a size.
    ``transform`` replaces the default scaling. Where a batch does not fit the GPU's memory
    ``batch_size`` is halved, and stays so.
    """

    answers: CallMode = "all"
    unnamed_columns = True

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

        self.activation = activation_of(output)
        self.device = pick(device)
        self.module = module.to(self.device).eval()
        self.name = name or type(module).__name__
        self.batch_size = batch_size
        self.transform = transform or scaled

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        import torch

        images = [prompt.image for prompt in prompts if prompt.image is not None]
        parts: list[torch.Tensor] = []
        done = 0
        with torch.inference_mode():
            while done < len(images):
                batch = images[done : done + self.batch_size]
                try:
                    inputs = self.transform(batch).to(self.device)
                    parts.append(self.module(inputs).double().cpu())
                    done += len(batch)
                    continue
                except torch.OutOfMemoryError:
                    if len(batch) == 1:
                        raise
                # only here, where the exception holds nothing of the batch any more
                self.batch_size = len(batch) // 2
                torch.cuda.empty_cache()
        answers = activated(torch.cat(parts).numpy(), self.activation)
        return [*to_answers(answers, prompts, f"model {self.name!r}")]

    def content(self) -> str:
        """A short hash of the parameters: a module that was trained on is another model."""
        return hash_of(self.module)


def scaled(images: list[Image]) -> "torch.Tensor":
    """Images H x W x C uint8 as one float tensor n x C x H x W in [0, 1]."""
    import torch

    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float().div_(255.0)


def activation_of(output: Output) -> Activation:
    """What makes P(yes) of an output; raises InputError for a word that is none."""
    check_known("value", output, _ACTIVATIONS, "output")
    return _ACTIVATIONS[output]


def _numbers(returned: Any, activation: Activation, who: str) -> Any:
    """P(yes) of an array n x C ..., or of a list of n arrays; raises ModelError for no numbers."""
    try:
        if isinstance(returned, list) and {np.ndim(part) for part in returned} == {3}:
            # masks, whose sizes may differ
            return [activated(np.asarray(part, float)[None], activation)[0] for part in returned]
        return activated(np.asarray(returned, float), activation)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"{who}: expected logits, an array of numbers, got {type(returned).__name__} "
            f"({one_line(error)})"
        ) from None


def _of_names(returned: Any, prompts: Sequence[Prompt], who: str) -> Any:
    """n x C of 0 and 1 where n texts name classes among the concepts; else what was returned."""
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
    """``function``: list of n texts -> list of n texts. ``price``: what each costs."""

    answers: CallMode = "one"
    needs_image = False

    def __init__(
        self,
        function: Callable[[list[str]], Sequence[str]],
        name: str | None = None,
        *,
        price: float = 0.0,
    ) -> None:
        self.function, self.price = function, price
        self.most_cost = price
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
    """Stands where a model would, in an audit that is asked and told by hand."""

    name = "by hand"
    needs_image = False
    takes_words = True

    def __init__(self, answers: CallMode) -> None:
        self.answers = answers

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        raise InputError(
            "run: expected an audit with a model to run, got one that is told by hand: ask() for "
            "calls, and tell() what came of each"
        )


def load(
    target: Annotated[
        str,
        Option(
            "'file.py:name' or 'package.module:name', a callable from a list of H x W x C uint8 "
            "images to an array n x C of P(yes), or of masks n x C x H x W, or of n captions"
        ),
    ],
    *,
    base: Path | None = None,
    output: Annotated[
        Output | None,
        Option(
            "what the numbers are; of logits a sigmoid is taken, or, where an oracle goes by the "
            "likeliest class, a softmax (default: probabilities of callables, logits of torch "
            "modules)"
        ),
    ] = None,
) -> ModelUnderTest:
    """A callable or torch module.

    The name may also be that of anything that has ``ask``. ``base`` is where relative files are
    looked for (default: here). Raises InputError where nothing is found under the name.
    """
    return as_model(load_object(target, base), target, output)


def as_model(source: Any, target: str, output: Output | None = None) -> ModelUnderTest:
    """What was found under ``target``, as a model; raises InputError where it is none."""
    expected = f"model {target!r}: expected a callable, a torch module or an object with 'ask'"
    if isinstance(source, type):
        raise InputError(
            f"{expected}, got the class {source.__name__}; name an object made of it, "
            f"{source.__name__}(...), or say kind = {target!r}"
        )
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
            "nothing here tells how its rows are made of images: wrap it in a function, lambda "
            "images: estimator.predict_proba([image.ravel() / 255 for image in images])"
        )
    raise InputError(f"{expected}, got {type(source).__name__}; {remedy}")


def model_of(source: ModelSource) -> ModelUnderTest:
    """An object with ``ask`` is a model; a torch module (images -> logits) and any other callable
    (list of images -> n x C of P(yes), or n names of classes) are wrapped; a DataFrame holds
    recorded answers; a text names any of these, ``file.py:name`` or ``package.module:name``, or an
    ONNX or TorchScript file.

    Raises InputError for anything else, a class among it: a model is made of that first.
    """
    if isinstance(source, str):
        path = Path(source)
        return _of_file(path) if path.suffix in ENDINGS else load(source)
    if is_table(source):
        from .recorded import Recorded

        return Recorded(source)
    return as_model(source, str(getattr(source, "__name__", type(source).__name__)))


def _of_file(path: Path) -> ModelUnderTest:
    """The model in an ONNX or TorchScript file. Raises InputError where there is no such file, and
    for any other, with the lines that wrap it."""
    if not path.is_file():
        raise InputError(f"model: file {str(path)!r} does not exist")
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
        f"model: expected a model, got a file {str(path)!r} that is a program to whoever opens it; "
        f"wrap it yourself, and give what comes of it:\n\n{lines(path, repr(str(path)), 2)}"
    )
