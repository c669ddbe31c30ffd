"""What MkDocs does beside the pages under docs/: pages made from root files and notebooks, and
formulas as MathML, so that no script from elsewhere is needed to show them."""

import html
import re
from pathlib import Path
from typing import Any

import rendered_notebooks
from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent.parent
ROOT_PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "index.md",
}
"""Files at the root of the repository, and the pages that they are here; README.md is only what
links lead to."""
ROOT_LINK = re.compile(r"\]\(\.\./((?:\.\./)*)(" + "|".join(map(re.escape, ROOT_PAGES)) + ")")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are made here."""
    made = {page: name for name, page in ROOT_PAGES.items() if page != "index.md"}
    pages = {page: root_page(ROOT / name) for page, name in made.items()}
    pages |= rendered_notebooks.pages(ROOT / "docs" / "notebooks")
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def root_page(path: Path) -> str:
    """The text of a file at the root, with links that lead to its pages here."""
    text = path.read_text(encoding="utf-8")
    for name, page in ROOT_PAGES.items():
        text = text.replace(f"]({name}", f"]({page}")
    return text.replace("](docs/", "](")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page's text, whose links to files of the repository lead to the pages made of them."""
    text = ROOT_LINK.sub(lambda found: f"]({found[1]}{ROOT_PAGES[found[2]]}", markdown)
    return re.sub(r"(\]\([^)\s]*)\.ipynb\)", r"\1.md)", text)


def on_page_content(content: str, **_: Any) -> str:
    """A page's HTML, with MathML in place of TeX."""
    return FORMULA.sub(_mathml, content)


def _mathml(found: re.Match[str]) -> str:
    return convert(
        html.unescape(found[3]).strip(), display="block" if found[2] == "[" else "inline"
    )
