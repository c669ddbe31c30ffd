"""HTML templates: every value is escaped, and one that is lacking is an error."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def templates_of(*folders: Path) -> Environment:
    """The templates of the folders, by file name, the first folder's first."""
    return Environment(
        loader=FileSystemLoader(folders, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
