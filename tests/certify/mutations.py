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
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify import certifier, game, rules, sequences, strata
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.engine import candidates, draw_order, selector
from adaptive_vtt.errors import JournalError
from adaptive_vtt.testing import ScriptedModel, tiny_dataset


class Mutation(NamedTuple):
    """A line of ``module`` and what it becomes."""

    module: ModuleType
    line: str
    becomes: str


MUTATIONS = [
    # candidates
    Mutation(
        candidates,
        "table = table[:, strata.of(table[0]) == place]",
        "table = table[:, strata.of(table[0]) >= place]",
    ),
    Mutation(
        candidates,
        "nth(rng.integers(ranks, size=self.most)), self._seen, self.most)",
        "nth(rng.integers(ranks, size=self.most)), self._seen, self.most - 1)",
    ),
    Mutation(
        candidates,
        "dict.fromkeys(number for number in draws().tolist() if number not in seen)",
        "dict.fromkeys(draws().tolist())",
    ),
    Mutation(candidates, "self._seen.update(seen_by)", "self._seen.update(seen_by[:-1])"),
    Mutation(candidates, "self.most = limit\n", "self.most = limit // 2\n"),
    Mutation(candidates, "rng.integers(ranks, size", "rng.integers(ranks - 1, size"),
    Mutation(candidates, "else max(1, limit //", "else 1 + max(1, limit //"),
    Mutation(
        candidates, "else calls[self._askable(calls)]", "else calls[self._askable(calls)][1:]"
    ),
    Mutation(
        candidates,
        "calls = calls[np.sort(rng.choice(len(calls), self.most, replace=False))]",
        "calls = calls[: self.most]",
    ),
    Mutation(
        candidates,
        "self._table[:, hole] = self._table[:, last]",
        "self._table[:, last] = self._table[:, hole]",
    ),
    Mutation(
        candidates,
        'self._by_call(table[:, np.argsort(by_call, kind="stable")])',
        'self._by_call(table[:, np.argsort(by_call, kind="stable")[1:]])',
    ),
    Mutation(
        candidates,
        "numbers = numbers[[number not in self._seen for number in seen_by]]",
        "numbers = numbers[[number in self._seen for number in seen_by]]",
    ),
    # draws and proposals
    Mutation(selector, "rng.random() * ends[-1]", "rng.random() ** 2 * ends[-1]"),
    Mutation(
        selector,
        'proposal.draw(generator(self.seed, "draw", number))',
        'proposal.draw(generator(self.seed, "draw", number + 1))',
    ),
    Mutation(
        selector,
        "probability = float(proposal.probabilities[place])",
        "probability = float(proposal.probabilities[place - 1])",
    ),
    Mutation(
        selector,
        "return Proposal(calls, (1 - exploration) * weights / total + exploration * spread)",
        "return Proposal(calls, (1 - exploration) * weights / total + spread)",
    ),
    Mutation(
        selector,
        "return Draw(number, int(calls[place]), question,",
        "return Draw(number, int(calls[place - 1]), question,",
    ),
    Mutation(selector, "self.pool.remove(questions)", "self.pool.remove(questions[1:])"),
    Mutation(
        selector,
        "self.certifier.strata.remove(questions)",
        "self.certifier.strata.remove(questions[:0])",
    ),
    Mutation(
        selector,
        'proposal.draw(generator(self.seed, "stratum", number))',
        'proposal.draw(generator(self.seed, "stratum", number + 1))',
    ),
    Mutation(
        selector,
        "self.pool.candidates(number, self.certifier.strata, stratum.place)",
        "self.pool.candidates(number + 1, self.certifier.strata, stratum.place)",
    ),
    Mutation(
        selector, "np.array([o.least for o in judged])", "np.array([o.least / 2 for o in judged])"
    ),
    # what a draw fixes
    Mutation(
        certifier, "touching = (count > 0).sum(axis=1)", "touching = (count > 0).sum(axis=1) + 1"
    ),
    Mutation(
        certifier,
        "low_base=frame.other_base + weight * low * predicted.sum(axis=1),",
        "low_base=frame.other_base + weight * low * predicted[:, 1:].sum(axis=1),",
    ),
    Mutation(
        certifier,
        "low_predicted=low * predicted[:, drawn],",
        "low_predicted=low * predicted[:, drawn - 1],",
    ),
    Mutation(
        certifier,
        "(count.sum(axis=1) - high * missing.sum(axis=1)),",
        "(count.sum(axis=1) - high * missing[:, 1:].sum(axis=1)),",
    ),
    Mutation(
        certifier,
        "high_predicted=count[:, drawn] - high * missing[:, drawn],",
        "high_predicted=count[:, drawn] - high * missing[:, drawn - 1],",
    ),
    Mutation(certifier, "scale=weight / proposal[drawn],", "scale=weight / proposal[drawn - 1],"),
    Mutation(
        certifier,
        "ratio = frame.calls[:, frame.place] / np.maximum(touching, 1) / frame.chance",
        "ratio = frame.calls[:, frame.place] / np.maximum(touching - 1, 1) / frame.chance",
    ),
    Mutation(
        certifier, "lo=frame.lowest(self._reach_down),", "lo=frame.lowest(self._reach_up) / 2,"
    ),
    Mutation(
        certifier,
        "tilt_bound=frame.swing(self._reach_tilt),",
        "tilt_bound=frame.swing(self._reach_tilt) / 2,",
    ),
    Mutation(
        certifier,
        "+ lean * weight * (count.sum(axis=1) - count[:, drawn] / proposal[drawn]),",
        "+ lean * weight * (count.sum(axis=1) - count[:, drawn]),",
    ),
    Mutation(certifier, "self.calls = self.calls - (count > 0)", "self.calls = self.calls - count"),
    Mutation(certifier, "self.unseen = self.unseen - count", "self.unseen = self.unseen - 1"),
    Mutation(
        certifier,
        "predicted = per_unit(inside * np.clip(predictions, CLIP, 1 - CLIP), unit, len(proposal))",
        "predicted = per_unit(inside * (predictions + 1.5), unit, len(proposal))",
    ),
    Mutation(
        certifier,
        "low = np.minimum(1.0, self._reach_down / np.maximum(down, TINY))",
        "low = np.ones_like(down)",
    ),
    # strata
    Mutation(
        strata,
        "return np.asarray(self.guess.sum(axis=1) - self.guess[:, self.place] / self.drawn)",
        "return np.asarray(self.guess.sum(axis=1) - self.guess[:, self.place])",
    ),
    Mutation(
        strata,
        "return self.inside * self.unseen.astype(float)",
        "return self.inside * self.sizes.astype(float)",
    ),
    Mutation(
        strata,
        'part = np.searchsorted(ends, ranks, side="right")',
        'part = np.searchsorted(ends, ranks, side="left")',
    ),
    Mutation(
        strata,
        "values[:, ~self.known] = values[:, self.known].mean(axis=1, keepdims=True)",
        "values[:, ~self.known] = values[:, self.known].max(axis=1, keepdims=True)",
    ),
    Mutation(
        strata,
        "sample * len(self._of) + self._variants[stratum][place]",
        "sample * len(self._of) + self._variants[stratum][place - 1]",
    ),
    Mutation(strata, "1 - left.prod(axis=1)", "1 - 0.9 * left.prod(axis=1)"),
    Mutation(strata, "self._calls[:, place] -= count > 0", "self._calls[:, place] -= count"),
    Mutation(
        strata, "self._questions[:, place] -= count", "self._questions[:, place] -= count > 0"
    ),
    # intervals, the share of alpha, and order
    Mutation(
        rules,
        "alpha / first) if even else alpha * np.array(self.weights)",
        "alpha) if even else first * alpha * np.array(self.weights)",
    ),
    Mutation(sequences, "enough = 1 / self.alpha", "enough = 0.5 / self.alpha"),
    Mutation(
        sequences,
        "inside[near] = (theta[:, target] * wealth).sum(axis=0)",
        "inside[near] = (0.8 * theta[:, target] * wealth).sum(axis=0)",
    ),
    Mutation(sequences, "wide = room + more", "wide = room"),
    Mutation(sequences, "np.where(moved, wide, room)", "np.where(moved, room, wide)"),
    Mutation(game, "self.least + bet.low_base", "self.least - bet.low_base"),
    Mutation(game, "self.waiting -= count", "self.waiting -= 2 * count"),
    Mutation(
        draw_order,
        "outcomes, cost = self._outcomes.pop(self.calls[self.learned])",
        "outcomes, cost = self._outcomes.pop(max(self._outcomes))",
    ),
]

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
    """Audits that draw from strata and from all calls, from subsets and from lists."""
    space = QuestionSpace(tiny_dataset(20, 3), ["identity", "brightness_up"], severities=[1, 2])
    for answers, options in KINDS:
        yield Audit(space, ScriptedModel(answers=answers, refuse=0.1), **{**OPTIONS, **options})


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
