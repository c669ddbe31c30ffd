"""Models of Hugging Face's transformers, from a folder or from what its cache holds: they classify,
segment, answer questions, write captions, or chat.

Models and their processors are used directly, not through ``transformers.pipeline``: pipelines give
no logits, and those for visual questions and for captions are gone from transformers 5.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from ...errors import InputError, check_known, one_line, unknown
from ...types import Answer, Ask, Image, JsonObject, Mask, Prompt, Unanswered, Value
from ...utils.importing import needed
from ...utils.options import Group, Option, parameters_of
from ..base import ModelDefaults
from ..checking import image_of
from ..network.prompt_templates import TEMPLATES, Template
from ..network.prompt_templates import template as named
from ..replies import NO_ANSWER, in_words, value_of
from .parameters import hash_of
from .tensors import Activation, Classes, ClassNamesOption, Device, activated

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

    def load(self, task: str, auto: Sequence[str]) -> "Loaded":
        """The model and its processor, by the first class of ``auto`` that takes it. Raises
        InputError where there is none that does ``task``."""
        with needed("transformers", "kind = 'transformers' needs transformers"):
            import transformers
        import torch

        from ...utils.devices import pick

        kinds = [getattr(transformers, name) for name in auto]
        config = self._read(transformers.AutoConfig)
        fitting = [kind for kind in kinds if type(config) in kind._model_mapping]
        if not fitting:
            raise InputError(
                f"model {self.path!r}: is of the type {config.model_type!r}, which transformers "
                f"cannot use for the task {task!r}; expected another task, one of "
                f"{', '.join(name for name in TASKS if name != task)}"
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
    auto: ClassVar[tuple[str, ...]]
    """The classes of transformers that load such models, in the order in which they are tried."""

    def __init__(
        self, source: Source, *, name: str | None = None, batch_size: BatchSize = 16
    ) -> None:
        self.name = name or Path(source.path).name
        self.batch_size = batch_size
        self._loaded = source.load(self.task, self.auto)

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
    return np.asarray(tensor.double().cpu().numpy())


# -- a class per task ------------------------------------------------------------------------------


class TransformersClassifier(TransformersModel):
    """P(yes) of a concept is the probability of its classes.

    ``activation``: what makes probabilities of logits. Unless given, a sigmoid where the model's
    configuration says that labels are several or it has one class, else a softmax. Of several
    classes that are one concept, a softmax is summed and of sigmoids the largest counts.
    """

    answers, task = "all", "image-classification"
    auto = ("AutoModelForImageClassification",)

    def __init__(
        self,
        source: Source,
        *,
        class_names: ClassNamesOption = None,
        activation: Annotated[
            Activation | None,
            Option(
                "image-classification: what makes P(yes) of its logits (default: as its "
                "configuration says)"
            ),
        ] = None,
        **options: Any,
    ) -> None:
        super().__init__(source, **options)
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
    auto = (
        "AutoModelForSemanticSegmentation",
        "AutoModelForUniversalSegmentation",
        "AutoModelForImageSegmentation",
    )

    def __init__(
        self, source: Source, *, class_names: ClassNamesOption = None, **options: Any
    ) -> None:
        super().__init__(source, **options)
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
    return [str(config.id2label[number]) for number in range(config.num_labels)]


_MARKS = "Ġ▁Ċ \n\t.,:;!*\"'()"
"""What vocabularies put around a word: marks of a space, and punctuation."""
Inputs = dict[str, Any]


def tokens_of(word: str, vocabulary: Mapping[str, int]) -> list[int]:
    """The tokens that say ``word`` by themselves, whatever its case and the space before it."""
    said = (text.removesuffix("</w>").strip(_MARKS).lower() for text in vocabulary)
    return sorted(n for text, n in zip(said, vocabulary.values(), strict=True) if text == word)


class _Writer(TransformersModel):
    """Answers in words, the likeliest at every step, at most ``max_tokens`` of them."""

    answers = "one"

    def __init__(self, source: Source, *, max_tokens: MaxTokens = 64, **options: Any) -> None:
        super().__init__(source, **options)
        self._max_tokens = max_tokens

    def _written(self, inputs: Inputs) -> list[str]:
        made = self._generated(inputs, self._max_tokens)
        fresh = made.sequences[:, -len(made.logits) :]  # many models repeat what they were given
        return self._loaded.processor.batch_decode(fresh, skip_special_tokens=True)

    def _yes(self, inputs: Inputs) -> list[float]:
        """P(yes) of n inputs: of the next token's probabilities, those of Yes and No alone."""
        return _between(as_array(self._generated(inputs, 1).logits[0]), *self._yes_no)

    @cached_property
    def _yes_no(self) -> tuple[list[int], list[int]]:
        vocabulary = self._loaded.tokenizer.get_vocab()
        yes, no = (tokens_of(word, vocabulary) for word in ("yes", "no"))
        if not yes or not no:
            raise InputError(
                f"model {self.name!r}: expected a vocabulary with Yes and No, to read P(yes) from, "
                "it has no token for them; ask questions in words, which need none"
            )
        return yes, no

    def _generated(self, inputs: Inputs, most: int) -> Any:
        return self._loaded.model.generate(
            **inputs,
            max_new_tokens=most,
            do_sample=False,
            num_beams=1,
            output_logits=True,
            return_dict_in_generate=True,
        )


class TransformersCaptioner(_Writer):
    """Describes images, whatever it is asked."""

    task, auto = "image-to-text", ("AutoModelForImageTextToText",)

    def _answers(self, prompts: Sequence[Prompt]) -> list[Answer]:
        seen = self._loaded.processor.image_processor(
            images=pictures(prompts, self.name), return_tensors="pt"
        )
        texts = self._written(self._loaded.moved(seen))
        pairs = zip(texts, prompts, strict=True)
        return [Answer((_text(said),) * len(prompt.concepts)) for said, prompt in pairs]


class TransformersQuestions(_Writer):
    """Answers one question about an image: by the likeliest of its own list of answers (ViLT), or
    by writing (BLIP).

    P(yes) of a concept that no words ask about is the share of Yes against No, among the answers or
    the first tokens, when asked "Does the image show this: CONCEPT?". Raises InputError for
    questions with options.
    """

    task = "visual-question-answering"
    auto = ("AutoModelForVisualQuestionAnswering",)
    _template = TEMPLATES["zero-shot"]  # of which it takes the questions alone

    def _answers(self, prompts: Sequence[Prompt]) -> list[Answer]:
        # batches of one question: some of these models do not leave padding out of account
        alike = groupby(prompts, key=lambda prompt: (self._question(prompt), in_words(prompt)))
        return [one for (text, words), of in alike for one in self._asked(text, words, [*of])]

    def _question(self, prompt: Prompt) -> str:
        ask: Ask = self._template.asks(prompt)[0]
        if ask.options:
            raise InputError(
                f"model {self.name!r}: expected questions without options for the task "
                "'visual-question-answering', got some with; task = 'image-text-to-text' takes them"
            )
        return ask.text

    def _asked(self, text: str, words: bool, prompts: Sequence[Prompt]) -> list[Answer]:
        shown = pictures(prompts, self.name)
        inputs = self._loaded.inputs(images=shown, text=[text] * len(shown), truncation=True)
        said: Callable[[Inputs], Sequence[Value]]
        if self._loaded.model.can_generate():
            said = self._written if words else self._yes
        else:
            said = self._likeliest if words else self._share
        return [Answer((_text(one) if isinstance(one, str) else one,)) for one in said(inputs)]

    def _likeliest(self, inputs: Inputs) -> list[str]:
        best = self._loaded.model(**inputs).logits.argmax(1).tolist()
        return [str(self._loaded.model.config.id2label[place]) for place in best]

    def _share(self, inputs: Inputs) -> list[float]:
        labels = {str(v): int(k) for k, v in self._loaded.model.config.id2label.items()}
        places = [tokens_of(word, labels) for word in ("yes", "no")]
        if not all(places):
            raise InputError(
                f"model {self.name!r}: expected yes and no among its answers, to read P(yes) from, "
                f"got {len(labels)} others; ask questions in words"
            )
        return _between(as_array(self._loaded.model(**inputs).logits), *places)


class TransformersChat(_Writer):
    """A chat model that sees, asked by its own chat template.

    P(yes) of a concept that no words ask about comes, by ``yes_from``, of the share of Yes against
    No in the probabilities of the reply's first token ("logprobs"), or of the word that the reply
    says, 1 or 0 ("words": for templates that have it reason first). Questions in words, options
    included, get the reply. Raises InputError for a processor without a chat template.
    """

    task, auto = "image-text-to-text", ("AutoModelForImageTextToText",)

    def __init__(
        self,
        source: Source,
        *,
        batch_size: BatchSize = 4,
        template: Annotated[
            Template,
            Option(
                "image-text-to-text: words of the prompt: a built-in template, or a text file such "
                "as my.txt (default: zero-shot)",
                reads=named,
                type=str,
            ),
        ] = TEMPLATES["zero-shot"],
        yes_from: Annotated[
            Literal["logprobs", "words"],
            Option(
                "image-text-to-text: P(yes) from the probabilities of the first token, or from "
                "what the reply says"
            ),
        ] = "logprobs",
        **options: Any,
    ) -> None:
        super().__init__(source, batch_size=batch_size, **options)
        self._template, self._yes_from = template, yes_from
        self.template_hash, self.takes_words = template.hash, template.takes_words
        self.hard_answers = yes_from == "words"
        if getattr(self._loaded.processor, "chat_template", None) is None:
            raise InputError(
                f"model {self.name!r}: expected a processor with a chat template, it has none; "
                "task = 'image-to-text' describes images without one"
            )
        self._loaded.tokenizer.padding_side = "left"  # replies begin where prompts end

    def protocol(self) -> JsonObject:
        return self._template.protocol({"temperature": 0})

    def _answers(self, prompts: Sequence[Prompt]) -> list[Answer]:
        return [
            one for words, of in groupby(prompts, in_words) for one in self._asked(words, [*of])
        ]

    def _asked(self, words: bool, prompts: Sequence[Prompt]) -> list[Answer]:
        inputs = self._inputs(prompts)
        if self._yes_from == "logprobs" and not words:
            return [Answer((p,)) for p in self._yes(inputs)]
        pairs = zip(self._written(inputs), prompts, strict=True)
        return [Answer((value_of(said, prompt, 0),)) for said, prompt in pairs]

    def _inputs(self, prompts: Sequence[Prompt]) -> Inputs:
        shown = zip(pictures(prompts, self.name), map(self._template.render, prompts), strict=True)
        made = self._loaded.processor.apply_chat_template(
            [self._conversation(*pair) for pair in shown],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"padding": True},
        )
        return self._loaded.moved(made)

    def _conversation(self, picture: Any, text: str) -> list[JsonObject]:
        seen = {"type": "image", "image": picture}
        said = [{"role": "user", "content": [seen, {"type": "text", "text": text}]}]
        if self._template.system:
            system = {"type": "text", "text": self._template.system}
            said.insert(0, {"role": "system", "content": [system]})
        return said


def _between(logits: Any, yes: list[int], no: list[int]) -> list[float]:
    """Of softmax probabilities of n x V logits, the share of ``yes`` in both."""
    from scipy.special import expit, logsumexp

    return expit(logsumexp(logits[:, yes], 1) - logsumexp(logits[:, no], 1)).tolist()


def _text(said: str) -> str | Unanswered:
    return said.strip() or Unanswered(NO_ANSWER)


TASKS: dict[str, type[TransformersModel]] = {
    each.task: each
    for each in (
        TransformersClassifier,
        TransformersSegmenter,
        TransformersQuestions,
        TransformersCaptioner,
        TransformersChat,
    )
}


def _folder(path: str, base: Path) -> str:
    """A folder starts at ``base``; another name is the hub's."""
    return str(base / path) if (base / path).is_dir() else path


def transformers_model(
    path: Annotated[
        str,
        Option(
            "the folder that save_pretrained wrote, or a name on the hub that the cache on this "
            "machine holds",
            reads=_folder,
        ),
    ],
    task: Annotated[Task, Option("what it does; image-text-to-text is a chat model that sees")],
    *,
    revision: Annotated[str | None, Option("of the hub: a branch, tag or commit")] = None,
    local_files_only: Annotated[
        bool, Option("fetch nothing; false lets a name be fetched from the hub")
    ] = True,
    device: Device = "auto",
    precision: Annotated[Precision, Option("of its numbers")] = "float32",
    **options: Annotated[
        Any,
        Group(TransformersClassifier),
        Group(TransformersChat),
    ],
) -> TransformersModel:
    """A model that transformers loads: classifier, segmenter, captioner, VQA or chat model.

    ``path`` and the arguments after it: see ``Source``; ``options``: those of the task's class.
    Raises InputError for a task or options that there are not, and for models that cannot be used.
    """
    check_known("task", task, TASKS, "model.task")
    known = sorted(parameters_of(TASKS[task]) - {"self", "source", "options"})
    for name in options:
        if name not in known:
            error = unknown("option", name, known, f"a model of the task {task!r}")
            raise InputError(f"{error}; other tasks have it")
    source = Source(path, revision, local_files_only, device, precision)
    return TASKS[task](source, **options)
