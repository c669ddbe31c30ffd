"""Which class of ours a task of Hugging Face's is audited by."""

from inspect import signature
from pathlib import Path
from typing import Annotated, Any

from ...errors import InputError, unknown
from ...utils.options import Group, Option
from .classes import Device
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
    if task not in TASKS:
        raise unknown("task", task, TASKS, "model.task")
    known = [name for name in signature(TASKS[task]).parameters if name != "source"]
    for name in options:
        if name not in known:
            error = unknown("option", name, known, f"a model of the task {task!r}")
            raise InputError(f"{error}; other tasks have it")
    source = Source(path, revision, local_files_only, device, precision)
    return TASKS[task](source, **options)
