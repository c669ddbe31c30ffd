"""The questions of a SPEC.toml as a task of Inspect: ``results.export.inspect_task`` from a
file."""

from pathlib import Path
from typing import TYPE_CHECKING

from . import read_spec
from .building import build_space

if TYPE_CHECKING:
    from inspect_ai import Task


def audit_task(
    spec: Path | str, *, questions: int = 200, seed: int = 0, template: str = "zero-shot"
) -> "Task":
    """A fixed sample of the spec's questions, judged by its oracle; its [model] is not asked.

    ``template``: a built-in one, or a text file, from the folder of the spec. Raises InputError for
    what the spec or ``results.export.inspect_task`` refuses.
    """
    from ..models.network.prompt_templates import template as template_named
    from ..results.export.inspect_task import inspect_task

    path = Path(spec)
    space = build_space(read_spec(path), path.parent)
    words = template_named(template, path.parent)
    return inspect_task(space, questions=questions, seed=seed, template=words, name=path.stem)
