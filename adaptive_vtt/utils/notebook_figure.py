"""Plotly figures that also bring a still picture, for pages on which no script runs."""

from base64 import b64encode
from typing import Any
from uuid import uuid4

from plotly.graph_objects import Figure

from .figure_svg import svg


class NotebookFigure(Figure):  # type: ignore[misc]  # plotly has no types
    """Notebooks that run Plotly show it; exported ones, and code hosts, a still picture of it.

    Where scripts run the picture goes once Plotly's figure has come.
    """

    _ipython_display_ = None
    """Plotly's own would be asked before the method below, and shows no still picture."""

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None, validate: bool = True, **options: Any
    ) -> dict[str, Any]:
        found = super()._repr_mimebundle_(include, exclude, validate, **options) or {}
        picture = svg(self.to_plotly_json())
        address = b64encode(picture.encode()).decode("ascii")
        id = f"still-{uuid4().hex}"
        still = f'<img id="{id}" alt="figure" src="data:image/svg+xml;base64,{address}">'
        script = f'<script>if (window.Plotly) document.getElementById("{id}").remove()</script>'
        live = found.get("text/html", "")
        html = f"{live}{still}{script if live else ''}"
        return {**found, "text/html": html, "image/svg+xml": picture}
