"""The questions of a SPEC.toml as a task of Inspect."""

from pathlib import Path
from typing import TYPE_CHECKING

from . import read_spec
from .building import build_space

if TYPE_CHECKING:
    from inspect_ai import Task


def audit_task(
    spec: Path | str, *, questions: int = 200, seed: int = 0, template: str = "zero-shot"
) -> "Task":
    """Return a fixed sample of the spec's questions, judged by its oracle, as a task of Inspect.

    Args:
        spec: The SPEC.toml, whose [model] is not asked.
        questions: How many questions the sample has.
        seed: Seed of the sample.
        template: A built-in prompt template, or a text file in the folder of the spec.

    Raises:
        InputError: The spec, or ``results.export.inspect_task``, refuses it.
    """
    from ..models.network.prompt_templates import template as template_named
    from ..results.export.inspect_task import inspect_task

    path = Path(spec)
    space = build_space(read_spec(path), path.parent)
    words = template_named(template, path.parent)
    return inspect_task(space, questions=questions, seed=seed, template=words, name=path.stem)
