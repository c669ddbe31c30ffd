"""Run the notebooks and make pages of them."""

import re
import tempfile
from pathlib import Path

SECONDS = 300
"""Longest that one cell may take, on a busy machine."""
_LOOKS = r'<style scoped>.*?</style>| border="1" class="dataframe"| style="text-align: right;"'
"""Styles of pandas; tables look like all others here."""


def pages(folder: Path) -> dict[str, str]:
    """Return page name -> Markdown for every notebook in ``folder``, run from its beginning.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell fails, and so does the build.
    """
    return {f"notebooks/{path.stem}.md": page(path) for path in sorted(folder.glob("*.ipynb"))}


def page(path: Path) -> str:
    """Return one notebook as Markdown with the output of its cells."""
    import nbformat
    from nbclient import NotebookClient
    from nbconvert import MarkdownExporter

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        quiet = ["--log-level=ERROR"]  # it warns that loopback is not encrypted
        NotebookClient(
            notebook, timeout=SECONDS, resources=resources, extra_arguments=quiet
        ).execute()
    text, _ = MarkdownExporter().from_notebook_node(notebook)
    return re.sub(_LOOKS, "", text, flags=re.DOTALL)
