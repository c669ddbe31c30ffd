"""Classifiers and segmenters of transformers: P(yes) and masks of the concepts asked about."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from ...types import Answer, Mask, Prompt
from ...utils.options import Option
from .classes import Classes, ClassNamesOption
from .hugging_face import BatchSize, Source, TransformersModel, as_array, pictures
from .tensors import Activation, activated


class TransformersClassifier(TransformersModel):
    """P(yes) of a concept is the probability of its classes.

    ``activation``: what makes probabilities of logits. Unless given, a sigmoid where the model's
    configuration says that labels are several or it has one class, else a softmax. Of several
    classes that are one concept, a softmax is summed and of sigmoids the largest counts.
    """

    answers, task = "all", "image-classification"

    def __init__(
        self,
        source: Source,
        *,
        name: str | None = None,
        batch_size: BatchSize = 16,
        class_names: ClassNamesOption = None,
        activation: Annotated[
            Activation | None,
            Option(
                "image-classification: what makes P(yes) of its logits (default: as its "
                "configuration says)"
            ),
        ] = None,
    ) -> None:
        super().__init__(source, name=name, batch_size=batch_size)
        config = self._loaded.model.config
        self._classes = Classes(_labels(config), class_names or {}, self.name)
        several = config.problem_type == "multi_label_classification" or config.num_labels == 1
        self._activation: Activation = activation or ("sigmoid" if several else "softmax")

    def _answers(self, prompts: Sequence[Prompt]) -> list[Answer]:
        inputs = self._loaded.inputs(images=pictures(prompts, self.name))
        likely = activated(as_array(self._loaded.model(**inputs).logits), self._activation)
        return [
            Answer(tuple(self._classes.likely(row, c, self._activation) for c in prompt.concepts))
            for row, prompt in zip(likely, prompts, strict=True)
        ]


class TransformersSegmenter(TransformersModel):
    """A concept's mask is where one of its classes is the likeliest of all classes.

    A model with a single class gives the mask where its sigmoid is above one half.
    """

    answers, task = "all", "image-segmentation"

    def __init__(
        self,
        source: Source,
        *,
        name: str | None = None,
        batch_size: BatchSize = 16,
        class_names: ClassNamesOption = None,
    ) -> None:
        super().__init__(source, name=name, batch_size=batch_size)
        self._labels = _labels(self._loaded.model.config)
        self._classes = Classes(self._labels, class_names or {}, self.name)

    def _answers(self, prompts: Sequence[Prompt]) -> list[Answer]:
        shown = pictures(prompts, self.name)
        output = self._loaded.model(**self._loaded.inputs(images=shown))
        maps = self._maps(output, [picture.size[::-1] for picture in shown])
        return [
            Answer(tuple(self._mask(classes, concept) for concept in prompt.concepts))
            for classes, prompt in zip(maps, prompts, strict=True)
        ]

    def _mask(self, classes: npt.NDArray[Any], concept: str) -> Mask:
        return np.isin(classes, self._classes.of(concept))

    def _maps(self, output: Any, sizes: list[tuple[int, int]]) -> list[npt.NDArray[Any]]:
        """The likeliest class of each pixel, H x W per image; -1 where it is none."""
        if len(self._labels) > 1:
            read = self._loaded.processor.post_process_semantic_segmentation
            return [part.cpu().numpy() for part in read(output, target_sizes=sizes)]
        from torch.nn.functional import interpolate

        logits = output.logits.float()
        sized = [
            interpolate(logits[k][None], size, mode="bilinear") for k, size in enumerate(sizes)
        ]
        return [np.where(as_array(part[0, 0]) > 0, 0, -1) for part in sized]


def _labels(config: Any) -> list[str]:
    """The names of a model's classes, in the order of its outputs."""
    return [str(config.id2label[number]) for number in range(config.num_labels)]
