"""kind = "transformers": a model of Hugging Face's transformers."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ..datasets import Dataset
from ..models import REGISTRY, ModelUnderTest
from ..models.local.hugging_face import Precision, Task
from .model_section import ModelSection
from .workers import Worked


class TransformersSection(ModelSection, Worked):
    """A model of Hugging Face's transformers, on this machine."""

    kind: Literal["transformers"] = "transformers"
    task: Task = Field(description="what it does; image-text-to-text is a chat model that sees")
    path: str = Field(
        description="the folder that save_pretrained wrote, or a name on the hub that the cache on "
        "this machine holds"
    )
    revision: str | None = Field(None, description="of the hub: a branch, tag or commit")
    local_files_only: bool | None = Field(
        None, description="fetch nothing (true); false lets a name be fetched from the hub"
    )
    device: str | None = Field(
        None, description="cpu, cuda or cuda:1; CUDA where there is one (auto)"
    )
    precision: Precision | None = Field(None, description="of its numbers (float32)")
    batch_size: int | None = Field(
        None, description="images at a time (16; image-text-to-text: 4)", ge=1
    )
    class_names: dict[str, str | list[str]] | None = Field(
        None,
        description="image-classification, image-segmentation: concept -> the model's class or "
        "classes of it (default: the one of its name)",
    )
    activation: Literal["none", "sigmoid", "softmax"] | None = Field(
        None,
        description="image-classification: what makes P(yes) of its logits (default: as its "
        "configuration says)",
    )
    max_tokens: int | None = Field(None, description="longest reply (64)", ge=1)
    template: str | None = Field(
        None,
        description="image-text-to-text: words of the prompt (zero-shot): a built-in template, "
        "or a text file such as my.txt",
    )
    yes_from: Literal["logprobs", "words"] | None = Field(
        None,
        description="image-text-to-text: P(yes) from the probabilities of the first token, or from "
        "what the reply says (logprobs)",
    )

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        """The model: a folder starts at ``base``, another name is the hub's."""
        given: dict[str, Any] = self.own("path", "task")
        if self.template is not None:
            from ..models.network.prompt_templates import template

            given["template"] = template(self.template, base)
        folder = base / self.path
        path = str(folder) if folder.is_dir() else self.path
        return REGISTRY.get(self.kind)(path, self.task, **given, **self.named())
