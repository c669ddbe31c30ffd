"""Of a plain pool: what its report does not show."""

from markupsafe import Markup

from .evidence import Evidence
from .section import Section

TEXT = (
    "Somebody looked at each item and told its loss: there are no images, concepts or changes of "
    "images to show here, and no answers to believe anything of. Items are named by their number."
)


def section(evidence: Evidence) -> Section:
    """The sentence that stands in place of pictures, conditions and answers."""
    return Section("A plain pool", "items", Markup("<p>{}</p>").format(TEXT))
