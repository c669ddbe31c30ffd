"""Eight photographs whose objects are boxed by hand, and the words for these objects.

They are read from the packages scikit-image (``skimage/data``: public domain or CC0) and
scikit-learn (``sklearn/datasets/images``: CC BY 2.0). Boxes are drawn by eye, around the visible
part of each object, in pixels.
"""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from adaptive_vtt.datasets.pictures import Picture, from_pictures, shown
from adaptive_vtt.datasets.table import TableDataset
from adaptive_vtt.types import Box, mask_of

from .vocabulary import EVERYDAY, Vocabulary, Words

FOLDERS = (("skimage", "data"), ("sklearn", "datasets/images"))
"""Packages that have the photographs, and the folder in each."""

Edges = tuple[int, int, int, int]

# fmt: off
PHOTOGRAPHS: Mapping[str, tuple[tuple[int, int], Mapping[str, Edges]]] = MappingProxyType({
    "astronaut.png": ((512, 512), {
        "person": (25, 8, 370, 512), "flag": (0, 0, 128, 310),
        "rocket": (352, 0, 508, 290), "helmet": (280, 342, 505, 512),
    }),
    "camera.png": ((512, 512), {
        "person": (8, 66, 325, 512), "camera": (252, 138, 330, 200),
        "tripod": (245, 190, 402, 500),
    }),
    "chelsea.png": ((300, 451), {"cat": (20, 0, 420, 298)}),
    "coffee.png": ((400, 600), {
        "cup": (170, 18, 420, 306), "saucer": (75, 30, 480, 382), "spoon": (318, 65, 425, 325),
    }),
    "motorcycle_left.png": ((500, 741), {"motorcycle": (96, 75, 700, 455)}),
    "rocket.jpg": ((427, 640), {"rocket": (303, 140, 346, 412)}),
    "china.jpg": ((427, 640), {"temple": (70, 28, 360, 395), "tree": (545, 135, 640, 427)}),
    "flower.jpg": ((427, 640), {"flower": (172, 85, 448, 362)}),
})
"""File -> its height and width, and its objects with their boxes: left, top, right, bottom."""

TAKEN_FOR: Mapping[str, str] = MappingProxyType({
    "person": "statue", "flag": "curtain", "rocket": "tower", "helmet": "ball",
    "camera": "telescope", "tripod": "ladder", "cat": "dog", "cup": "bowl", "saucer": "tray",
    "spoon": "fork", "motorcycle": "bicycle", "temple": "castle", "tree": "bush",
    "flower": "fruit",
})
# fmt: on
GOES_WITH: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(("person", "flag", "helmet"), ("dog", "car")),
        **dict.fromkeys(("camera", "tripod"), ("bag", "bench")),
        **dict.fromkeys(("cup", "saucer", "spoon"), ("cake", "bottle")),
        **dict.fromkeys(("temple", "tree", "flower"), ("bird", "bench")),
        "rocket": ("airplane", "truck"),
        "cat": ("ball", "chair"),
        "motorcycle": ("car", "helmet"),
    }
)
_NAMES = (
    *TAKEN_FOR,
    *TAKEN_FOR.values(),
    *(each for names in GOES_WITH.values() for each in names),
)
NEW_WORDS: Mapping[str, Words] = MappingProxyType(
    {name: Words(name, f"{name}s") for name in dict.fromkeys(_NAMES) if name not in EVERYDAY.words}
)
"""Words that drawn scenes lack."""
VOCABULARY = Vocabulary({**EVERYDAY.words, **NEW_WORDS}, TAKEN_FOR, GOES_WITH, EVERYDAY.settings)


def folders() -> tuple[Path, ...]:
    """Return the folders of photographs in the packages that are installed."""
    specs = [(importlib.util.find_spec(package), inside) for package, inside in FOLDERS]
    return tuple(Path(s.origin).parent / inside for s, inside in specs if s and s.origin)


def photographs(where: Sequence[Path] | None = None) -> TableDataset | None:
    """Return the photographs in these folders (default: ``folders()``), None if there are none.

    Their masks are the boxes.
    """
    where = folders() if where is None else where
    files = {
        name: file
        for name in PHOTOGRAPHS
        for folder in reversed(where)  # a file of the first folder that has it comes last and stays
        if (file := folder / name).is_file()
    }
    if not files:
        return None
    pictures = [_picture(name, file) for name, file in files.items()]
    kinds = shown(pictures)
    concepts = [kind for kind in TAKEN_FOR if kind in kinds]
    return from_pictures(pictures, concepts, "photographs", name="photographs")


def _picture(name: str, file: Path) -> Picture:
    (height, width), things = PHOTOGRAPHS[name]
    boxes = [Box(kind, *edges) for kind, edges in things.items()]
    masks = {box.label: mask_of([box], height, width) for box in boxes}
    truth = dict.fromkeys(things, 1)
    return Picture(name, file, height, width, truth, boxes=boxes, masks=masks)
