"""How many lines of code each room may have. Numbers fall; a commit that raises one says for what.

Lines that hold code count; blank lines, docstrings and comments do not, so that explaining costs
nothing. `python -m tests.test_house` prints the rooms as they are.
"""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUDGETS = {
    "audit": 2660,
    "benchmark": 979,
    "certify": 3098,
    "cli": 3198,
    "config": 1350,
    "datasets": 3705,
    "demo": 361,
    "engine": 4524,
    "journal": 1791,
    "models": 5125,
    "oracles": 2296,
    "people": 706,
    "relations": 2985,
    "results": 5756,
    "strategies": 607,
    "surrogates": 1758,
    "testing": 635,
    "top": 1770,
    "utils": 1667,
}


def code_lines(source: str) -> int:
    """Return the number of lines of a module that hold code."""
    numbered = enumerate(map(str.strip, source.splitlines()), start=1)
    lines = {number for number, line in numbered if line and not line.startswith("#")}
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):  # an attribute's docstring, too
                docstrings.update(range(node.lineno, node.end_lineno + 1))
            case ast.Constant(value=str()) | ast.JoinedStr():  # with the blank lines in it
                lines.update(range(node.lineno, node.end_lineno + 1))
    return len(lines - docstrings)


def rooms() -> Counter[str]:
    """Return the lines of code of every room: a folder of the package, or its top level."""
    counted: Counter[str] = Counter()
    package = ROOT / "adaptive_vtt"
    for folder in (package, ROOT / "strategies", ROOT / "surrogates"):
        for path in folder.rglob("*.py"):  # which follows none of the links to the three rooms
            inside = path.relative_to(package).parts if folder == package else (folder.name, "")
            counted[inside[0] if len(inside) > 1 else "top"] += code_lines(path.read_text("utf-8"))
    return counted


def test_no_room_outgrows_its_budget() -> None:
    grown = {name: lines for name, lines in rooms().items() if lines > BUDGETS.get(name, 0)}
    assert not grown, f"lines of code above the budget of {__name__}: {grown}"


def test_blank_lines_docstrings_and_comments_do_not_count() -> None:
    source = '''"""Of the module.

    Two paragraphs."""

LIMIT = 3
"""Of an attribute."""


# a comment
def added(
    first: int,
) -> str:
    """Of a function."""
    text = """of several
    lines"""  # two
    return text
'''
    assert code_lines(source) == 7


if __name__ == "__main__":
    for room, count in sorted(rooms().items()):
        print(f'    "{room}": {count},')
    print(f"    # {rooms().total()} in all")
