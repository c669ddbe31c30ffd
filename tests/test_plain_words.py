"""A linter of our sentences: in docs, docstrings, help and messages.

CONTRIBUTING explains its rules. Documentation keeps all of them. The rooms of the product keep a
number of exceptions each, which may fall and never rises again.

`python -m tests.test_plain_words [PATH...]` prints each exception with its place.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOT_PAGES = [ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING")]
ROOT_PAGES += [ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"]
GENERATED = {"spec.md", "cli.md", "python.md", "result-json.md"}
"""Pages of docs/reference made of the product's texts, which count for their rooms."""
PAGES = [*ROOT_PAGES, *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if page.name not in GENERATED]

LONGEST = 35
MEAN = 15.5
"""Words in a sentence: at most in each, and on average in the documentation."""

OUTGROWN = {
    r"told|tells?|foretells?": "give, print, show, predict",
    r"said": "read, printed, given",
    r"errs?|erring": "is wrong, fails",
    r"foresee[ns]?|foresaw": "predict",
    r"anew": "again",
    r"beside|besides": "next to, with",
    r"heard|worded": "received, phrased",
    r"dear|likest": "expensive, most similar",
    r"go(es)? on|gone on|going on|went on": "continue",
    r"pass(es)? over": "ignore",
    r"go(es)? by|going by": "follow",
    r"nothing but|of which|of whom|no more than what": "only; that have; at most",
    r"as it stands|as ever|as of any": "unchanged, as usual",
    r"let through|is to be had|(?<!line )of its own": "allow, is available, own",
}
"""Words that readers stumble over -> what we write."""
ANY_OUTGROWN = re.compile(rf"\b({'|'.join(OUTGROWN)})\b", flags=re.I)
DOCSTRING_BEGINS = ("Of ", "What ", "Whether ", "Those ", "That ", "So ")
SQL = re.compile(r"(CREATE|SELECT|WITH|INSERT) ")
"""Beginning of statements, which are code and no sentences."""
QUESTION_WORDS = {"what", "when", "where", "whether", "which", "who", "whose", "why", "if"}

BUDGETS = {
    "audit": 0,
    "benchmark": 0,
    "certify": 0,
    "cli": 0,
    "config": 0,
    "datasets": 0,
    "demo": 0,
    "engine": 0,
    "journal": 0,
    "models": 0,
    "oracles": 0,
    "people": 0,
    "relations": 0,
    "results": 0,
    "strategies": 0,
    "surrogates": 0,
    "testing": 0,
    "top": 0,
    "utils": 0,
}
"""Exceptions that the texts of each room still have. A number may fall, and never rises again."""


def plain(text: str) -> str:
    """Return a text without markup; code, formulas and names of files count as one word."""
    text = re.sub(r"^\w+(?=: )", "Code", text)  # the function that a message is about
    text = re.sub(r"``?[^`\n]*``?|\$[^$\n]+\$", "Code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}", "", text)


def sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph, which end at a stop before a capital or a quote."""
    parts = re.split(r"(?<=[.?!])[\")]?\s+(?=[\"'(]?[A-Z0-9])", " ".join(plain(text).split()))
    return [part for part in parts if part]


def paragraphs(page: str) -> Iterator[tuple[int, str]]:
    """Return each paragraph, list item, cell and heading of a page with its line."""
    page = re.sub(r"^```.*?^```$", lambda m: "\n" * m[0].count("\n"), page, flags=re.M | re.S)
    page = re.sub(r"^\$\$.*?^\$\$$", lambda m: "\n" * m[0].count("\n"), page, flags=re.M | re.S)
    page = re.sub(r"<!--.*?-->", lambda m: "\n" * m[0].count("\n"), page, flags=re.S)
    begun, held = 0, ""
    for number, line in enumerate([*page.splitlines(), ""], start=1):
        single = line.startswith(("|", "#"))
        if held and (not line.strip() or single or re.match(r"\s*([-*]|\d+\.) ", line)):
            yield begun, held
            held = ""
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip("|"))
            yield from ((number, cell.strip()) for cell in cells if re.search(r"\w", cell))
        elif line.startswith("#"):
            yield number, line
        elif line.strip():
            begun = begun if held else number
            held += " " + re.sub(r"^\s*([-*]|\d+\.) ", "", line)


def faults(text: str) -> Iterator[str]:
    """Return what the rules refuse in one paragraph."""
    if len(text.split()) <= LONGEST and not ANY_OUTGROWN.search(text):
        return  # as most are
    for met in ANY_OUTGROWN.finditer(plain(text)):
        instead = next(new for old, new in OUTGROWN.items() if re.fullmatch(old, met[0], re.I))
        yield f"'{met[0]}': write {instead}"
    for sentence in sentences(text):
        if (words := len(sentence.split())) > LONGEST:
            yield f"{words} words: {sentence[:60]} ..."


def heading_faults(heading: str) -> Iterator[str]:
    """Return what the rules refuse in a heading: it is a noun, an imperative or a question."""
    text = plain(heading.lstrip("# "))
    if text.split()[0].lower() in QUESTION_WORDS and not text.endswith("?"):
        yield f"'{text}': a question ends with a question mark"
    if re.search(r"\b(is|are|was|were|has|have|may|can|does|did)\b", text) and text[-1] != "?":
        yield f"'{text}': a heading is a noun, an imperative or a question"


def page_faults(page: Path) -> list[str]:
    """Return what the rules refuse on a page, each with its line."""
    found = []
    for line, text in paragraphs(page.read_text(encoding="utf-8")):
        each = [*faults(text), *(heading_faults(text) if text.startswith("#") else ())]
        found += [f"{page.relative_to(ROOT)}:{line}: {fault}" for fault in each]
    return found


def module_faults(path: Path) -> list[str]:
    """Return what the rules refuse in the docstrings and texts of a module."""
    found = []
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        text = node.value.strip()
        if id(node) in docstrings and text.startswith(DOCSTRING_BEGINS):
            found.append((node.lineno, f"a docstring begins with {text.split()[0]!r}"))
        if " " in text and not SQL.match(text):
            parts = re.split(r"\n\s*\n|\n\s*(?:- |\w+(?: \([^)]*\))?: )", text)
            found += [(node.lineno, fault) for part in parts for fault in faults(part)]
    return [f"{path.relative_to(ROOT)}:{line}: {fault}" for line, fault in found]


def modules() -> Iterator[tuple[str, Path]]:
    """Return each module of the product with its room."""
    package = ROOT / "adaptive_vtt"
    for folder in (package, ROOT / "strategies", ROOT / "surrogates"):
        for path in sorted(folder.rglob("*.py")):
            inside = path.relative_to(package).parts if folder == package else (folder.name, "")
            yield (inside[0] if len(inside) > 1 else "top"), path


def exceptions() -> Counter[str]:
    """Return how many texts of each room break a rule."""
    counted: Counter[str] = Counter()
    for room, path in modules():
        counted[room] += len(module_faults(path))
    return counted


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_keep_the_rules(page: Path) -> None:
    assert page_faults(page) == []


def lengths(pages: list[Path]) -> list[int]:
    """Return the words of every sentence of running text."""
    texts = [text for page in pages for _, text in paragraphs(page.read_text("utf-8"))]
    running = [s for text in texts if text.startswith(" ") for s in sentences(text)]
    return [len(sentence.split()) for sentence in running if len(sentence.split()) > 2]


def test_rooms_break_no_more_rules_than_they_did() -> None:
    grown = {room: n for room, n in exceptions().items() if n > BUDGETS.get(room, 0)}
    assert not grown, f"exceptions above those of {__name__}, which prints them with their lines"


REFUSED = {
    "The audit told us.": "'told': write give, print, show, predict",
    "It errs [here](page.md) and there.": "'errs': write is wrong, fails",
    "A word " + "and another " * 20 + "end.": "43 words: A word",
}


@pytest.mark.parametrize(("text", "fault"), REFUSED.items())
def test_a_fault_is_refused(text: str, fault: str) -> None:
    (found,) = faults(text)
    assert found.startswith(fault)
    assert [*faults("`told` is code. " + "A short sentence. " * 30)] == []


@pytest.mark.parametrize("heading", ["# What is shown", "## Rates are exact"])
def test_a_heading_that_is_a_clause_is_refused(heading: str) -> None:
    assert [*heading_faults(heading)] != []
    assert [*heading_faults(f"{heading}?"), *heading_faults("## Choose targets")] == []


def test_a_docstring_that_is_a_fragment_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "part.py").write_text('def area():\n    """Of one image."""\n')
    assert module_faults(tmp_path / "part.py") == ["part.py:2: a docstring begins with 'Of'"]


def test_sentences_are_short_on_average() -> None:
    found = lengths(PAGES)
    assert sum(found) / len(found) <= MEAN


def main(paths: list[str]) -> None:
    """Print what the rules refuse, of the given paths or of everything."""
    for page in PAGES:
        if not paths or any(str(page).endswith(path) for path in paths):
            print(*page_faults(page), sep="\n")
            found = lengths([page])
            print(f"  {page.name}: {sum(found) / max(1, len(found)):.1f} words a sentence")
    for _, path in modules():
        if any(str(path).endswith(name) for name in paths):
            print(*module_faults(path), sep="\n")
    if not paths:
        print(dict(sorted(exceptions().items())))


if __name__ == "__main__":
    main(sys.argv[1:])
