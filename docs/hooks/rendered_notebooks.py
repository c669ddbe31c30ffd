"""The notebooks, run anew and made into pages."""

import re
import tempfile
from pathlib import Path

SECONDS = 300
"""Longest that one cell may take, on a busy machine."""
_LOOKS = r'<style scoped>.*?</style>| border="1" class="dataframe"| style="text-align: right;"'
"""How pandas wants its tables to look; here they look as all others."""


def pages(folder: Path) -> dict[str, str]:
    """Name of a page -> its Markdown, of every notebook in ``folder``, run from its beginning.

    Raises nbclient.exceptions.CellExecutionError where a cell fails: the build fails with it.
    """
    return {f"notebooks/{path.stem}.md": page(path) for path in sorted(folder.glob("*.ipynb"))}


def page(path: Path) -> str:
    """One notebook as Markdown, with what its cells gave."""
    import nbformat
    from nbclient import NotebookClient
    from nbconvert import MarkdownExporter

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        there = {"metadata": {"path": folder}}
        quiet = ["--log-level=ERROR"]  # it warns that loopback is not encrypted
        NotebookClient(notebook, timeout=SECONDS, resources=there, extra_arguments=quiet).execute()
    text, _ = MarkdownExporter().from_notebook_node(notebook)
    return re.sub(_LOOKS, "", text, flags=re.DOTALL)
