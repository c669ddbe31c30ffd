"""MedTest's nine metamorphic relations for endoscopy (thesis LYU2308, CUHK 2024, chapter 3).

Light: saturation, contrast, white_balance, specularity. Motion: blur. Objects: instrument, feces,
blood. Others: text. They have five severities: where the thesis draws a number from a range,
severity s draws it from the s-th fifth of the range, mildest first. Ranges that the thesis does not
state are constants at the top of the modules.

Answers and masks stay the same: no addition covers a sample's masks, and only text changes pixels
outside the visible field.
"""

from pathlib import Path
from typing import Annotated

from ...errors import check_known, unexpected
from ...utils.options import Option, at_base
from .cutouts import Cutout, FieldFiles, Folder, Similar, Source
from .lighting import Blur, Contrast, Saturation, Specularity, WhiteBalance
from .objects import Blood, Feces, Instrument, Text
from .scene import FieldOf, MedTest, visible_field

__all__ = [
    "Blood", "Blur", "Contrast", "Cutout", "Feces", "FieldFiles", "Folder", "Instrument",
    "MedTest", "Saturation", "Similar", "Source", "Specularity", "Text", "WhiteBalance",
    "from_files", "relations", "visible_field",
]  # fmt: skip

TASKS = ("segmentation", "vqa", "classification")


def relations(
    task: str = "segmentation",
    *,
    instruments: Source | None = None,
    feces: Source | None = None,
    blood: Source | None = None,
    field: FieldOf | None = None,
    clipped: bool = False,
    stool_anywhere: bool = False,
) -> tuple[MedTest, ...]:
    """Return MedTest's nine relations; blood, which changes the class, not for classification.

    Args:
        task: One of TASKS.
        instruments: Source of cut-outs of instruments, such as a ``Folder``; default: drawn ones.
        feces: Source of cut-outs of stool; default: drawn ones.
        blood: Source of cut-outs of blood; default: drawn blood.
        field: Function Sample -> mask (H, W) of the visible field; default: the black frame is
            detected.
        clipped: Whether over-exposure clips the channels separately, as torchvision does, instead
            of keeping the hue.
        stool_anywhere: Whether stool may cover a sample's masks, as in the thesis (section 3.4.2).

    Raises:
        InputError: The task is unknown.
    """
    check_known("task", task, TASKS, "medtest")
    light = Saturation(field, clipped), Contrast(field, clipped), WhiteBalance(field)
    objects = Instrument(instruments, field), Feces(feces, field, stool_anywhere)
    bleeding = () if task == "classification" else (Blood(blood, field),)
    return (*light, Specularity(field), Blur(field), *objects, *bleeding, Text(field))


def from_files(
    task: str = "segmentation",
    *,
    instruments: Annotated[
        Path | None, Option("folder with images/ and masks/ to cut instruments from", reads=at_base)
    ] = None,
    feces: Annotated[Path | None, Option("the same for stool", reads=at_base)] = None,
    blood: Annotated[Path | None, Option("the same for blood", reads=at_base)] = None,
    field: Annotated[
        Path | None, Option("mask of the visible field, or a folder of masks", reads=at_base)
    ] = None,
    similar: Annotated[
        float | None, Option("cut from this share of a folder, by light and colour", gt=0, le=1)
    ] = None,
    clipped: Annotated[bool, Option("over-exposure clips channels, as torchvision")] = False,
    stool_anywhere: Annotated[bool, Option("stool may cover masks, as in the thesis")] = False,
) -> tuple[MedTest, ...]:
    """Return ``relations`` with cut-outs and visible fields from files.

    The options stand for ``Folder``, ``FieldFiles`` and ``Similar``; see there.
    """
    paths = {"instruments": instruments, "feces": feces, "blood": blood}
    folders = {name: Folder(path) for name, path in paths.items() if path is not None}
    sources: dict[str, Source] = {**folders}
    if similar is not None and not sources:
        raise unexpected("similar", "a folder of instruments, feces or blood with it", "none")
    if similar is not None:
        sources = {name: Similar(folder, similar) for name, folder in folders.items()}
    masks = None if field is None else FieldFiles(field)
    return relations(task, **sources, field=masks, clipped=clipped, stool_anywhere=stool_anywhere)
