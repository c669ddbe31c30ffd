"""Add to the site: pages made of root files and notebooks, and formulas as MathML, which needs no
script from elsewhere."""

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
    "SECURITY.md": "security.md",
    "README.md": "index.md",
}
"""Files at the root of the repository -> the pages that they are here."""
ROOT_LINK = re.compile(r"\]\(\.\./((?:\.\./)*)(" + "|".join(map(re.escape, ROOT_PAGES)) + ")")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made here."""
    pages = {page: root_page(ROOT / name) for name, page in ROOT_PAGES.items()}
    pages |= rendered_notebooks.pages(ROOT / "docs" / "notebooks")
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def root_page(path: Path) -> str:
    """Return the text of a file at the root, with links to pages of the site."""
    text = path.read_text(encoding="utf-8")
    for name, page in ROOT_PAGES.items():
        text = text.replace(f"]({name}", f"]({page}")
    return text.replace("](docs/", "](")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page's text with links to the pages made of root files and notebooks."""
    text = ROOT_LINK.sub(lambda found: f"]({found[1]}{ROOT_PAGES[found[2]]}", markdown)
    return re.sub(r"(\]\([^)\s]*)\.ipynb\)", r"\1.md)", text)


def on_page_content(content: str, **_: Any) -> str:
    """Return a page's HTML with MathML in place of TeX."""
    return FORMULA.sub(_mathml, content)


def _mathml(found: re.Match[str]) -> str:
    return convert(
        html.unescape(found[3]).strip(), display="block" if found[2] == "[" else "inline"
    )
