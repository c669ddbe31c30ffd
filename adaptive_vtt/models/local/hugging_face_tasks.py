"""Which class of ours a task of Hugging Face's is audited by."""

from inspect import signature
from typing import Any

from ...errors import InputError, unknown
from .hugging_face import Precision, Source, Task, TransformersModel
from .hugging_face_classes import TransformersClassifier, TransformersSegmenter
from .hugging_face_words import TransformersCaptioner, TransformersChat, TransformersQuestions

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


def transformers_model(
    path: str,
    task: Task,
    *,
    revision: str | None = None,
    local_files_only: bool = True,
    device: str = "auto",
    precision: Precision = "float32",
    **options: Any,
) -> TransformersModel:
    """A model that transformers loads: classifier, segmenter, captioner, VQA or chat model.

    ``path`` and the arguments after it: see ``Source``; ``options``: those of the task's class.
    Raises InputError for a task or options that there are not, and for models that cannot be used.
    """
    if task not in TASKS:
        raise unknown("task", task, TASKS, "model.task")
    known = [name for name in signature(TASKS[task]).parameters if name != "source"]
    for name in options:
        if name not in known:
            error = unknown("option", name, known, f"a model of the task {task!r}")
            raise InputError(f"{error}; other tasks have it")
    source = Source(path, revision, local_files_only, device, precision)
    return TASKS[task](source, **options)
