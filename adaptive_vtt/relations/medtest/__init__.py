"""MedTest's nine metamorphic relations for endoscopy (thesis LYU2308, CUHK 2024, chapter 3).

Light: saturation, contrast, white_balance, specularity. Motion: blur. Objects: instrument,
feces, blood. Not an object: text. Each has five severities: where the thesis draws a number
from a range, severity s draws from its s-th fifth, mildest first. Ranges that the thesis
does not give are constants at the top of each module.

All keep the answer and the mask: nothing that is added covers a sample's masks (highlights
alone may, up to a twentieth of them), and, but for text, nothing outside the visible field
changes.
"""

from ...errors import unknown
from .cutouts import Cutout, Folder, Source
from .lighting import Blur, Contrast, Saturation, WhiteBalance
from .objects import Blood, Feces, Instrument
from .scene import FieldOf, MedTest, visible_field
from .specularity import Specularity
from .text import Text

__all__ = [
    "Blood",
    "Blur",
    "Contrast",
    "Cutout",
    "Feces",
    "Folder",
    "Instrument",
    "MedTest",
    "Saturation",
    "Source",
    "Specularity",
    "Text",
    "WhiteBalance",
    "relations",
    "visible_field",
]

TASKS = ("segmentation", "vqa", "classification")


def relations(
    task: str = "segmentation",
    *,
    instruments: Source | None = None,
    feces: Source | None = None,
    blood: Source | None = None,
    field: FieldOf | None = None,
) -> tuple[MedTest, ...]:
    """The nine; for classification eight, as blood changes the class (section 4.1).

    ``instruments``, ``feces``, ``blood``: where cut-outs come from, such as a ``Folder``;
    by default they are drawn. ``field``: a function Sample -> H x W mask of the visible
    field, instead of detecting the black frame. Raises InputError for an unknown task.
    """
    if task not in TASKS:
        raise unknown("task", task, TASKS, "medtest")
    nine = (
        Saturation(field),
        Contrast(field),
        WhiteBalance(field),
        Specularity(field),
        Blur(field),
        Instrument(instruments, field),
        Feces(feces, field),
        Blood(blood, field),
        Text(field),
    )
    return tuple(r for r in nine if task != "classification" or not isinstance(r, Blood))
