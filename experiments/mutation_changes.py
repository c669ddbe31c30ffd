"""Small faults in a Python module, one at a time: what a mutation test plants.

A fault is one of: a comparison turned or its bound moved, `+ - * / // %` exchanged, a number one
more or one less, True for False, `and` for `or`, a `not` or minus left out, None returned, a
default text that is another, a statement left out (a call, a `raise`, a `del`, a count, what is
kept in an attribute or entry). Left as they are: annotations, docstrings, texts, asserts, what
only a type checker reads, and names that are given a value, since any test would miss those.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
_UNREAD = {"annotation", "returns", "decorator_list", "type_params", "bases"}
"""Fields of a node that hold nothing a test could notice."""


@dataclass(frozen=True)
class Mutant:
    """One fault: ``text`` is the module with it in place; ``before`` and ``after`` the change."""

    module: str
    line: int
    before: str
    after: str
    text: str

    @property
    def change(self) -> str:
        return f"{self.before} -> {self.after}"


@dataclass(frozen=True)
class _Site:
    """A place in a tree, and how it is changed and changed back."""

    node: ast.AST
    changed: ast.AST
    put: Callable[[ast.AST], None]


def count(source: str) -> int:
    """How many mutants a module has."""
    return sum(1 for _ in _sites(ast.parse(source)))


def mutant(module: str, source: str, number: int) -> Mutant:
    """The ``number``-th (0 ...) mutant of a module."""
    tree = ast.parse(source)
    site = list(_sites(tree))[number]
    before = ast.unparse(site.node)
    site.put(site.changed)
    after = ast.unparse(site.changed)
    line = getattr(site.node, "lineno", 0)
    return Mutant(module, line, before, after, ast.unparse(ast.fix_missing_locations(tree)))


def _sites(tree: ast.AST) -> Iterator[_Site]:
    """Every change of every node, in the order of the source."""
    for name, value in ast.iter_fields(tree):
        if name in _UNREAD:
            continue
        if isinstance(value, list):
            for place, child in enumerate(value):
                if isinstance(child, ast.AST) and not _left_alone(child):
                    yield from _changes(child, lambda new, v=value, p=place: _set(v, p, new))
                    yield from _sites(child)
        elif isinstance(value, ast.AST) and not _left_alone(value):
            yield from _changes(value, lambda new, t=tree, n=name: setattr(t, n, new))
            yield from _sites(value)


def _set(values: list[ast.AST], place: int, new: ast.AST) -> None:
    values[place] = new


def _left_alone(node: ast.AST) -> bool:
    """Whether nothing inside a node is changed."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)  # a docstring
    if isinstance(node, ast.If):
        return ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'")
    words = (ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert)
    return isinstance(node, words)


def _changes(node: ast.AST, put: Callable[[ast.AST], None]) -> Iterator[_Site]:
    for kind, changes in _CHANGES.items():
        if isinstance(node, kind):
            for changed in changes(node):
                yield _Site(node, changed, put)


# -- what is changed into what ---------------------------------------------------------------


def _compare(node: ast.Compare) -> Iterator[ast.AST]:
    for place, operator in enumerate(node.ops):
        for other in COMPARISONS[type(operator)]:
            operators = [*node.ops[:place], other(), *node.ops[place + 1 :]]
            yield ast.Compare(node.left, operators, node.comparators)


def _arithmetic(node: ast.BinOp) -> Iterator[ast.AST]:
    if type(node.op) in ARITHMETIC and not _texts(node):
        yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)


def _added(node: ast.AugAssign) -> Iterator[ast.AST]:
    yield ast.Pass()
    if type(node.op) in ARITHMETIC:
        yield ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value)


def _texts(node: ast.BinOp) -> bool:
    """Whether texts are joined or types united, rather than numbers reckoned with."""
    words = (ast.JoinedStr, ast.List, ast.Tuple)
    sides = (node.left, node.right)
    return any(isinstance(s, words) or _is_text(s) for s in sides)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
        yield ast.Constant(value - 1)


def _logic(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)


def _negation(node: ast.UnaryOp) -> Iterator[ast.AST]:
    if isinstance(node.op, ast.Not | ast.USub):
        yield node.operand


def _returned(node: ast.Return) -> Iterator[ast.AST]:
    if node.value is not None and ast.unparse(node.value) != "None":
        yield ast.Return(ast.Constant(None))


def _statement(node: ast.AST) -> Iterator[ast.AST]:
    if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name | ast.Tuple)):
        yield ast.Pass()


def _defaults(node: ast.arguments) -> Iterator[ast.AST]:
    """Default texts; numbers and truths are constants like any other."""
    for name in ("defaults", "kw_defaults"):
        values = getattr(node, name)
        for place, value in enumerate(values):
            if value is not None and _is_text(value):
                others = [*values[:place], ast.Constant("another"), *values[place + 1 :]]
                yield ast.arguments(**{**dict(ast.iter_fields(node)), name: others})


_CHANGES: dict[type[ast.AST], Callable[..., Iterator[ast.AST]]] = {
    ast.Compare: _compare,
    ast.BinOp: _arithmetic,
    ast.AugAssign: _added,
    ast.Constant: _constant,
    ast.BoolOp: _logic,
    ast.UnaryOp: _negation,
    ast.Return: _returned,
    ast.arguments: _defaults,
    ast.Expr: _statement,
    ast.Assign: _statement,
    ast.Delete: _statement,
    ast.Raise: _statement,
}
