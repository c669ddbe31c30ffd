"""A Python callable, or a torch module, as a model under test."""

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ModelError, unknown
from ...types import Answer, CallMode, Image, Prompt, Unanswered
from ..base import ModelDefaults
from ..checking import to_answers

if TYPE_CHECKING:
    import torch

_LISTS = (list, tuple, np.ndarray)


class PythonModel(ModelDefaults):
    """``function``: list of n images (H x W x C uint8) -> array n x C of P(yes), or the n names
    of each image's class. Where there is one concept, n numbers will do.

    A segmenter gives masks: n x C x H x W, or n arrays C x H x W, of bool or of P(yes); a
    captioner n texts.
    """

    answers: CallMode = "all"

    def __init__(self, function: Callable[[list[Image]], Any], name: str | None = None) -> None:
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        images = [prompt.image for prompt in prompts if prompt.image is not None]
        who = f"model {self.name!r}"
        return [*to_answers(_of_names(self.function(images), prompts, who), prompts, who)]


def _of_names(said: Any, prompts: Sequence[Prompt], who: str) -> Any:
    """n x C of 0 and 1 where n texts name classes among the concepts; else what was said."""
    named = [str(s) for s in said if isinstance(s, str)] if isinstance(said, _LISTS) else []
    concepts = prompts[0].concepts
    if prompts[0].asks or not named or len(named) != len(prompts):
        return said
    for name in named:
        if name not in concepts:
            raise ModelError(str(unknown("class", name, concepts, who)))
    return np.array([[float(concept == name) for concept in concepts] for name in named])


class TorchModel(ModelDefaults):
    """A torch module: float images n x ch x H x W in [0, 1] -> logits n x C, or n x C x H x W.

    The module is put into eval mode on ``device`` ("auto": CUDA where there is one);
    images of one call must share a size. ``transform`` replaces the default scaling. Where a
    batch does not fit the GPU's memory ``batch_size`` is halved, and stays so.
    """

    answers: CallMode = "all"

    def __init__(
        self,
        module: "torch.nn.Module",
        *,
        name: str | None = None,
        device: str = "auto",
        batch_size: int = 64,
        transform: Callable[[list[Image]], "torch.Tensor"] | None = None,
    ) -> None:
        from ...utils.devices import pick

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
                said = self._fits(batch)
                if said is None:
                    self.batch_size = len(batch) // 2
                    torch.cuda.empty_cache()
                else:
                    parts.append(said)
                    done += len(batch)
        return [*to_answers(torch.cat(parts).numpy(), prompts, f"model {self.name!r}")]

    def content(self) -> str:
        """A short hash of the parameters: a module that was trained on is another model."""
        digest = hashlib.blake2b(digest_size=8)
        for name, values in self.module.state_dict().items():
            digest.update(name.encode())
            digest.update(values.detach().cpu().contiguous().flatten().numpy().tobytes())
        return digest.hexdigest()

    def _fits(self, images: list[Image]) -> "torch.Tensor | None":
        """P(yes) of a batch, or None for one of several images that needs too much memory."""
        import torch

        try:
            batch = self.transform(images).to(self.device)
            return torch.sigmoid(self.module(batch).double()).cpu()
        except torch.OutOfMemoryError:
            if len(images) == 1:
                raise
            return None


def scaled(images: list[Image]) -> "torch.Tensor":
    """Images H x W x C uint8 as one float tensor n x C x H x W in [0, 1]."""
    import torch

    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float().div_(255.0)
