"""Words in Plotly figures, which renders some HTML and fills in templates."""

from html import escape


def shown(words: object) -> str:
    """Words that a figure shows as they are: as a name, a title, a label or on an axis."""
    return escape(str(words), quote=False).replace("%{", "%&#123;")
