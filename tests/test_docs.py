"""README.md and docs/: every snippet runs, every link leads somewhere, and what is named exists."""

import ast
import builtins
import importlib.util
import inspect
import json
import keyword
import os
import pkgutil
import re
import sys
import tomllib
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import adaptive_vtt
from adaptive_vtt.utils.registry import first_line
from tests.helpers.result_file import PUBLISHED
from tests.helpers.snippets import blocks, run_page

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
QUICK = {"concepts", "guarantee", "papers", "troubleshooting", "what-it-reads"}
"""Pages whose snippets take less than three seconds."""
NEEDED = {
    "docs/how-to/inspect.md": "inspect_ai",
}
"""What a page's snippets need that is not among the packages of the tests."""
MADE = {"architecture.md", "changelog.md", "contributing.md", "index.md", "security.md"}
MADE |= {f"notebooks/{path.stem}.md" for path in NOTEBOOKS}
"""Pages that the build makes (docs/hooks), of files to which links lead in a clone."""


def short(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def code() -> str:
    """Return all code that pages may name, and pyproject.toml, without comments."""
    folders = ("adaptive_vtt", "strategies", "surrogates", "tests/campaigns")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    text = "\n".join(map(text_of, [*files, ROOT / "pyproject.toml"]))
    return re.sub(r"(^|\s)#.*", "", text)


@cache
def names_in_code() -> set[str]:
    return {*dir(builtins), *keyword.kwlist, *re.findall(r"\w+", code())}


def without_blocks(page: Path) -> str:
    """Return a page without its fenced blocks, of which the fences stay."""
    return re.sub(r"^```.*?^```$", "```", text_of(page), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as Python-Markdown and GitHub make them."""
    heads = re.findall(r"^#+ (.+)$", without_blocks(page), flags=re.M)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", head.lower()).strip()) for head in heads}


def marked(path: Path) -> Any:
    slow = [] if path.stem in QUICK else [pytest.mark.slow]
    return pytest.param(path, id=short(path), marks=slow)


RUNNING = [
    p for p in PAGES[1:] if {b.language for b in blocks(text_of(p))} & {"python", "sh", "toml"}
]


@pytest.mark.parametrize("page", [marked(path) for path in RUNNING])  # README: tests/plain
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if short(page) in NEEDED:
        pytest.importorskip(NEEDED[short(page)])
    monkeypatch.chdir(tmp_path)
    # commands that a page gives to a shell find this Python, and this checkout's package
    monkeypatch.setenv(
        "PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    run_page(text_of(page), tmp_path)


def test_snippets_that_fail_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ZeroDivisionError):
        run_page("```python\nx = 0\n```\nand\n```python\n1 / x\n```\n", tmp_path)
    with pytest.raises(AssertionError, match="exit code 2 from: avtt resume nowhere"):
        run_page("```sh\navtt resume nowhere\n```\n", tmp_path)
    run_page("```sh\navtt resume nowhere  # exit code 2\n```\n", tmp_path)


@pytest.mark.parametrize("page", [pytest.param(p, id=short(p)) for p in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    prose = re.sub(r"`[^`\n]*`", "", without_blocks(page))
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        goal = (page.parent / name).resolve() if name else page
        there = goal.exists() and (page == README or DOCS in goal.parents or goal in ROOT_PAGES)
        if not there or (anchor and anchor not in anchors(goal)):
            broken.append(link)
    assert broken == []


def test_site_knows_the_files_to_which_links_lead() -> None:
    """Out of docs/ lead only links that docs/hooks/site.py turns into those to pages it makes."""
    hook = text_of(DOCS / "hooks" / "site.py")
    assert [path.name for path in ROOT_PAGES if f'"{path.name}": "' not in hook] == []


def begins(line: str) -> str:
    """Return what a line begins: an item of a "list", a row of a "table", or ""."""
    if re.match(r"([-*]|\d+\.) ", line):
        return "list"
    return "table" if line.startswith("|") else ""


ROOT_PAGES = [
    ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CONTRIBUTING", "CHANGELOG", "SECURITY")
]
EVERY_PAGE = [*PAGES, *ROOT_PAGES, ROOT / "tests" / "README.md"]


@pytest.mark.parametrize("page", [pytest.param(p, id=short(p)) for p in PAGES[1:] + ROOT_PAGES])
def test_lists_and_tables_follow_a_blank_line(page: Path) -> None:
    """Else MkDocs takes them for a part of the paragraph, though GitHub does not."""
    before, wrong = "", []
    for line in without_blocks(page).splitlines():
        if begins(line) and before and not begins(before) and not before.startswith((" ", "#")):
            wrong.append(line)
        before = line
    assert wrong == []


def test_every_page_is_in_the_navigation() -> None:
    nav = text_of(ROOT / "mkdocs.yml").split("\nnav:\n")[1]
    listed = re.findall(r": ([\w/-]+\.md)$", nav, flags=re.M)
    there = {path.relative_to(DOCS).as_posix() for path in PAGES[1:]} | MADE
    assert sorted(listed) == sorted(there)


def test_commands_name_modules_that_exist() -> None:
    text = "".join(text_of(page) for page in EVERY_PAGE)
    named = set(re.findall(r"python\s+-m\s+((?:adaptive_vtt|tests)(?:\.\w+)+)", text))
    assert len(named) > 15
    named.discard("tests.campaigns.NAME")
    assert [name for name in named if importlib.util.find_spec(name) is None] == []


def code_in(page: Path) -> list[str]:
    """The code within a page's lines, fenced blocks left out; white space is one space."""
    prose = without_blocks(page).replace("```", "")
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose)]


def paths_in(code: str) -> list[str]:
    """Return the words that name a file or folder: with a slash, or the ending of a file."""
    words = re.findall(r"[\w./-]+", code)
    return [w for w in words if "/" in w or re.fullmatch(r"\w+\.(py|md|toml|txt)", w)]


def exists(path: str, *more: Path) -> bool:
    return any((base / path).exists() for base in (ROOT, ROOT / "adaptive_vtt", *more))


OURS = {"adaptive_vtt", "strategies", "surrogates", "experiments", "tests", "docs"}


@pytest.mark.parametrize("page", [pytest.param(p, id=short(p)) for p in EVERY_PAGE])
def test_paths_in_the_repository_exist(page: Path) -> None:
    """Paths of the reader's own (``my-audit/model.py``) are not asked for."""

    def is_ours(path: str) -> bool:
        top = path.split("/")[0]
        module = path.endswith(".py") and (ROOT / "adaptive_vtt" / top).is_dir()
        return "/" in path and (top in OURS or module)

    named = [path for code in code_in(page) for path in paths_in(code) if is_ours(path)]
    assert [path for path in named if not exists(path, page.parent)] == []


FOREIGN = re.compile(
    r"pip |cosmic-ray|cr-report|test-command|python|--screenshot|result\.json|vX\.Y\.Z|"
    r"file\.py:name|package\.module:name"
)
"""How code in CONTRIBUTING begins that names nothing of this repository, or a module or a path,
which the tests above look at."""


def is_there(code: str) -> bool:
    """Return whether what code in CONTRIBUTING names exists: a command, files, or all its names."""
    from adaptive_vtt.cli.main import SUMMARIES

    first, *rest = code.split()
    if first == "make":
        return f"\n{rest[0]}:" in text_of(ROOT / "Makefile")
    if first == "avtt":
        return rest[0] in SUMMARIES
    if code.startswith("adaptive_vtt."):
        return bool(pkgutil.resolve_name(code.split("(")[0]))  # raises, naming what is missing
    if paths := paths_in(code):
        made = text_of(ROOT / ".gitignore").replace("\n/", "\n").split()
        tops = {path: f"{path.split('/')[0]}/" for path in paths}
        return all(exists(path) or any(fnmatch(tops[path], m) for m in made) for path in paths)
    names = set(re.findall(r"[^\W\d]\w*", re.sub(r'"[^"]* [^"]*"', "", code)))
    return code in names_in_code() or names <= names_in_code()


def test_contributing_points_at_what_exists() -> None:
    codes = [code for code in code_in(ROOT / "CONTRIBUTING.md") if not FOREIGN.match(code)]
    assert len(codes) > 30
    assert [code for code in codes if not is_there(code)] == []


def test_readme_is_short() -> None:
    assert len(text_of(README).splitlines()) <= 100


def test_badges_of_readme_are_true() -> None:
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))
    classifiers = project["project"]["classifiers"]
    versions = [c.split(" :: ")[-1] for c in classifiers if re.search(r"Python :: 3\.\d+$", c)]
    strict = "mypy strict" if project["tool"]["mypy"]["strict"] else "mypy"
    texts = {"python": " | ".join(versions), "licence": project["project"]["license"]}
    for name, text in {**texts, "types": strict}.items():
        assert f"badge-{name}.svg" in text_of(README)
        assert f">{text}</text>" in text_of(DOCS / "images" / f"badge-{name}.svg")


# -- the reference ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    """docs/hooks/reference.py, which needs nothing that only the site needs."""
    spec = importlib.util.spec_from_file_location("reference", DOCS / "hooks" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["spec.md", "cli.md", "python.md", "result-json.md"])
def test_reference_is_as_the_code_makes_it(name: str, reference: ModuleType) -> None:
    fresh = text_of(DOCS / "reference" / name) == reference.PAGES[name]()
    assert fresh, f"docs/reference/{name} is older than the code: make reference"


def test_spec_page_names_every_field_with_its_description() -> None:
    from adaptive_vtt.config import Spec
    from adaptive_vtt.config.section import kinds_of

    page = text_of(DOCS / "reference" / "spec.md")
    for section, info in Spec.model_fields.items():
        part = page.split(f"\n## `[{section}]`\n")[1].split("\n## ")[0]
        for kind in kinds_of(info.annotation):
            for name, field in kind.model_fields.items():
                description = (field.description or "").replace("|", "\\|")
                assert '`kind = "' in part if name == "kind" else f"| `{name}` |" in part
                assert description in part
    assert "| any |" not in page


def test_cli_page_has_every_command_and_option(reference: ModuleType) -> None:
    page = text_of(DOCS / "reference" / "cli.md")
    commands = dict(reference.all_commands())
    assert {"avtt audit", "avtt preview", "avtt serve-demo"} < set(commands)
    for name, command in commands.items():
        part = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
        for option in command.params:
            if option.param_type_name == "option" and option.name != "help":
                assert all(f"`{word}`" in part for word in option.opts), (name, option.name)


def test_python_page_has_every_public_name_with_its_signature_and_docstring() -> None:
    page = text_of(DOCS / "reference" / "python.md")  # as the code makes it, see above
    assert " object at 0x" not in page  # the next process would have another
    own = page.split("\n## adaptive_vtt\n")[1].split("\n## ")[0]
    for name in adaptive_vtt.__all__:
        part = getattr(adaptive_vtt, name)
        if isinstance(part, ModuleType) and name != "audit":
            below = page.split(f"\n## adaptive_vtt.{name}\n")[1].split("\n## ")[0]
            mine = [n for n in part.__all__ if getattr(part, n) is not getattr(adaptive_vtt, n, 0)]
            assert [n for n in mine if f"\n### {name}.{n}\n" not in below] == []
        else:
            assert f"\n### {name}\n\n```py\n{name}(" in own
            assert first_line(getattr(part, name, part)) in own
    assert "    half_width: float | None = None,\n" in own  # without what it tells SPEC.toml
    assert "\n| `ask(n = 1)` | `list[Call]` | " in own
    assert "\n| argument | description |\n|---|---|\n| `space` | " in own
    assert "\nNone\n" not in page  # everything has a docstring


def test_every_parameter_of_a_public_name_is_described(reference: ModuleType) -> None:
    parts = {n: part for own in reference.public_parts().values() for n, part in own.items()}
    callables = {n: p for n, p in parts.items() if inspect.isclass(p) or inspect.isfunction(p)}
    assert len(callables) > 150
    missing = {name: reference.undescribed(part) for name, part in callables.items()}
    assert {name: names for name, names in missing.items() if names} == {}


def test_result_page_names_every_field_of_a_result() -> None:
    """Those of the schema, which tests/results holds results to."""
    page, found = text_of(DOCS / "reference" / "result-json.md"), json.loads(text_of(PUBLISHED))
    fields = {*found["properties"], *found["$defs"]["TargetEntry"]["properties"]}
    assert [name for name in fields if f"| `{name}` |" not in page] == []


# -- notebooks --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem) for p in NOTEBOOKS])
def test_notebooks_are_valid_and_without_outputs(path: Path) -> None:
    notebook = json.loads(text_of(path))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids) > 4
    assert notebook["cells"][0]["cell_type"] == "markdown"
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            ast.parse("".join(cell["source"]))


@pytest.mark.slow
@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem) for p in NOTEBOOKS])
def test_notebooks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in json.loads(text_of(path))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)


# -- troubleshooting --------------------------------------------------------------------------


def test_messages_in_troubleshooting_are_those_of_the_code() -> None:
    joined = re.sub(r'"\s*\n\s*r?f?"', "", code())  # texts of several lines
    texts = re.sub(r"\\(.)", r"\1", joined)
    texts += "".join(map(text_of, (ROOT / "adaptive_vtt").rglob("templates/*.j2")))
    rows = re.findall(r"^\| `([^`]+)` \|", text_of(DOCS / "troubleshooting.md"), flags=re.M)
    assert len(rows) > 20
    apart = r"\.\.\.|'\w+'|\w+: expected |expected |, got"  # words that `errors.unexpected` adds
    pieces = [p.strip(" :,") for row in rows for p in re.split(apart, row)]
    gone = [p for p in pieces if len(p) > 10 and p not in texts and not p.startswith("unknown")]
    assert gone == []
