"""Models in ONNX files, run by ONNX Runtime."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from ...errors import InputError, check_known, one_line
from ...types import Answer, CallMode, Prompt, Unanswered
from ...utils.files import instead
from ...utils.importing import needed
from ...utils.options import Option, at_base, parameters_of
from ..checking import image_of
from .tensors import InputShape, TensorModel, batches

TYPES: dict[str, npt.DTypeLike] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8,
}


class OnnxModel(TensorModel):
    """A classifier or segmenter with one input, an image. Needs the extra ``onnx``.

    Args:
        path: The ONNX file.
        name: Name in errors, journals and reports. Default None: the file's.
        batch_size: Images at a time, unless the network fixes it.
        providers: ONNX Runtime's execution providers, in order of preference.
        **tensors: Options of `TensorModel`.

    Raises:
        InputError: The file cannot be read, its input is no image, or an option is unknown.
    """

    answers: CallMode = "all"

    def __init__(
        self,
        path: Annotated[Path, Option("the file", reads=at_base)],
        *,
        name: str | None = None,
        batch_size: Annotated[int, Option("images at a time", ge=1)] = 64,
        providers: Annotated[Sequence[str], Option("ONNX Runtime's, in order")] = (
            "CPUExecutionProvider",
        ),
        **tensors: Any,
    ) -> None:
        for option in tensors:
            check_known("option", option, parameters_of(TensorModel), "OnnxModel")
        super().__init__(**tensors)
        self.name, self.model_files = name or path.stem, (path,)
        self.unnamed_columns = self._concepts is None
        self._session = session(path, providers)
        where = f"model {str(path)!r}"
        self._input, self._dtype, shape = image_input(self._session, where)
        self._shape = InputShape.of(shape, where)
        outputs = [output.name for output in self._session.get_outputs()]
        self._output_name = self._output_among(outputs, where)
        self._batch = self._shape.batch or batch_size

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Return answers in the order of the prompts; a batch holds images of one size."""
        who = f"model {self.name!r}"

        def tensor(prompt: Prompt) -> npt.NDArray[Any]:
            return self._preprocessing.apply(image_of(prompt, who), self._shape, self._dtype)

        answers: list[Answer | Unanswered] = []
        for batch, tensors in batches(prompts, self._batch, tensor):
            inputs = np.stack(tensors)
            if self._shape.batch is not None:  # fill a fixed batch with repeated images
                inputs = inputs[np.arange(self._shape.batch) % len(batch)]
            (output,) = self._session.run([self._output_name], {self._input: inputs})
            answers += self._answers(output[: len(batch)], batch, self._shape, who)
        return answers


def session(path: Path, providers: Sequence[str], what: str = "model") -> Any:
    """Return a session of ONNX Runtime for a file.

    Args:
        path: The ONNX file.
        providers: Execution providers, in order of preference.
        what: The section of SPEC.toml, for errors.

    Raises:
        InputError: The file does not exist or is no network, or a provider is unknown.
    """
    with needed("onnx", "ONNX files need onnxruntime"):
        import onnxruntime
    if path.is_dir():
        raise InputError(f"{what}: expected an ONNX file, got the folder {str(path)!r}")
    if not path.is_file():
        raise InputError(f"{what}: file {str(path)!r} does not exist{instead(path)}")
    for provider in providers:
        check_known("ONNX Runtime provider", provider, onnxruntime.get_available_providers())
    try:
        return onnxruntime.InferenceSession(path, providers=list(providers))
    except Exception as error:  # onnxruntime's errors have no common base class
        raise InputError(f"{path}: is no ONNX network: {one_line(error)[:200]}") from None


def image_input(session: Any, where: str) -> tuple[str, npt.DTypeLike, list[Any]]:
    """Return the name, type and shape of a network's only input.

    Raises:
        InputError: The network has several inputs, or its input has another type than TYPES.
    """
    inputs = session.get_inputs()
    if len(inputs) != 1:
        names = ", ".join(tensor.name for tensor in inputs)
        raise InputError(f"{where}: expected one input, an image, got {names}")
    check_known("input type", inputs[0].type, TYPES, where)
    return inputs[0].name, TYPES[inputs[0].type], list(inputs[0].shape)
