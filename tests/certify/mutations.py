"""One line of the engine changed at a time, and what notices it: ``verify``, or the audit itself.

    python -m tests.certify.mutations

prints a table: what a line became, and what noticed it. Audits are made with the changed line and
verified by ``verify``, which runs none of the code that is changed.
"""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from itertools import product
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import JournalError
from adaptive_vtt.testing import ScriptedModel, tiny_dataset


class Mutation(NamedTuple):
    """A line of ``module`` and what it becomes."""

    module: ModuleType
    line: str
    becomes: str


def listed(text: str) -> Iterator[Mutation]:
    """Read lines "- a line" and "+ what it becomes" under the module's name in brackets."""
    for section in text.split("\n[")[1:]:
        name, *lines = section.strip().splitlines()
        module = import_module(f"adaptive_vtt.{name.rstrip(']')}")
        for line, becomes in zip(lines[::2], lines[1::2], strict=True):
            yield Mutation(module, line.removeprefix("- "), becomes.removeprefix("+ "))


MUTATIONS = [*listed(Path(__file__).with_suffix(".txt").read_text("utf-8"))]
TARGETS = ("overall", "concepts", "relations")
OPTIONS: dict[str, Any] = {"half_width": 0.1, "targets": TARGETS, "batch": 3, "seed": 1}
KINDS: list[tuple[Any, dict[str, Any]]] = [
    ("one", {"budget": 60, "candidates": 6, "unanswered": "both"}),  # subsets of strata
    ("all", {"budget": 24, "candidates": 20, "targets": ("overall", "relations")}),  # strata
    ("all", {"budget": 24, "candidates": 20, "targets": ("overall", "concepts")}),
    ("one", {"budget": 12, "candidates": 4096}),  # all unseen calls
    # subsets of all calls, and of less than half of them
    ("one", {"budget": 120, "candidates": 20, "targets": ("overall",), "half_width": 0.01}),
]


def audits() -> Iterator[Audit]:
    """Audits that draw from strata and from all calls, from subsets and from lists; those without
    a surrogate, which take least, first."""
    space = QuestionSpace(tiny_dataset(20, 3), ["identity", "brightness_up"], severities=[1, 2])
    for surrogate, (answers, options) in product((False, True), KINDS):
        model = ScriptedModel(answers=answers, refuse=0.1)
        yield Audit(space, model, **{**OPTIONS, "surrogate": surrogate, **options})


def noticed(mutation: Mutation) -> str:
    """What notices a mutation: "verify", an error of the audit itself, or "" for nothing."""
    with mutated(mutation):
        for audit in audits():
            try:
                audit.run()
            except Exception as error:  # whatever a broken line raises ends the audit
                return f"the audit: {type(error).__name__}"
            try:
                verify(audit.journal)
            except JournalError:
                return "verify"
    return ""


@contextmanager
def mutated(mutation: Mutation) -> Iterator[None]:
    """Run the functions of the module as they are with the changed line."""
    path = Path(str(mutation.module.__file__))
    source = path.read_text("utf-8")
    if source.count(mutation.line) != 1:
        raise ValueError(
            f"{path.name}: expected once, got {source.count(mutation.line)} times: {mutation.line}"
        )
    namespace = dict(vars(mutation.module))
    exec(compile(source.replace(mutation.line, mutation.becomes), str(path), "exec"), namespace)
    before: list[tuple[FunctionType, CodeType]] = []
    changed = dict(functions(namespace, mutation.module.__name__))
    for name, function in functions(vars(mutation.module), mutation.module.__name__):
        if name in changed and changed[name].__code__ != function.__code__:
            before.append((function, function.__code__))
            function.__code__ = changed[name].__code__
    if not before:
        raise ValueError(f"{path.name}: expected a line of a function, got {mutation.line}")
    try:
        yield
    finally:
        for function, code in before:
            function.__code__ = code


def functions(members: Any, module: str) -> Iterator[tuple[str, FunctionType]]:
    """The functions and methods of a module by qualified name, what decorators wrapped."""
    for member in [*members.values()]:
        if inspect.isclass(member) and member.__module__ == module:
            yield from functions(vars(member), module)
            continue
        if isinstance(member, property):
            member = member.fget
        elif isinstance(member, cached_property):
            member = member.func
        elif isinstance(member, classmethod | staticmethod):
            member = member.__func__
        member = inspect.unwrap(member) if callable(member) else member
        if isinstance(member, FunctionType) and member.__module__ == module:
            yield member.__qualname__, member


def main() -> None:
    missed = 0
    for mutation in MUTATIONS:
        by = noticed(mutation)
        module, becomes = mutation.module.__name__.rpartition(".")[2], mutation.becomes.strip()
        print(f"{module:11} {becomes[:64]:64} {by or 'NOT NOTICED'}", flush=True)
        missed += not by
    print(f"{len(MUTATIONS) - missed} of {len(MUTATIONS)} are noticed")
    if missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
