"""EndoBench's tasks, subtasks, scenes and visual prompts, and how many questions each has.

Source: EndoBench, appendix A.2. The counts follow from the published percentages, each of
which must be k / N: they sum to 6,832. The table of results there has the names of the three
lesion tasks permuted; here they are as the text has them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

IMAGE_LEVEL = "image-level"
PRESENCE, POSITION = "{} Presence", "Region Position"
"""Tasks that EndoBench does not have: is such a thing there (by its role), and in which part."""


@dataclass(frozen=True)
class Task:
    """One of the twelve; ``subtasks``: (name, abbreviation, questions) each, if it has any."""

    name: str
    short: str
    category: str
    questions: int
    subtasks: tuple[tuple[str, str, int], ...] = ()


_ANATOMY, _LESION = "Anatomical Structure Recognition", "Lesion Analysis and Grading"
_SURGERY = "Surgical Workflow and Operation Analysis"
_SPACE = "Spatial Localization and Region Understanding"

TASKS = (
    Task("Landmark Identification", "LI", _ANATOMY, 625),
    Task("Organ Identification", "OI", _ANATOMY, 418),
    Task("Lesion Type Identification", "LT", _LESION, 1058,
         (("Lesion Classification", "LC", 808), ("Polyp Type Classification", "PT", 250))),
    Task("Lesion Severity Grading", "LS", _LESION, 194),
    Task("Lesion Quantification", "LQ", _LESION, 323),
    Task("Preoperative Assessment", "PA", _SURGERY, 100),
    Task("Macro Phases Identification", "MP", _SURGERY, 738,
         (("Surgical Phase Recognition", "SP", 350), ("Surgical Step Recognition", "SS", 388))),
    Task("Micro Operation Analysis", "MO", _SURGERY, 666,
         (("Surgical Action Recognition", "SA", 361),
          ("Treatment Intervention Recognition", "TI", 305))),
    Task("Instrument Management", "IM", _SURGERY, 297,
         (("Instrument Counting", "IC", 199), ("Instrument Presence Verification", "IP", 98))),
    Task("Visual Grounding", "VG", _SPACE, 669),
    Task("Region Selection", "RS", _SPACE, 433),
    Task("Region Recognition", "RR", _SPACE, 1311,
         (("Bounding-box-based Region Recognition", "Box", 433),
          ("Contour-based Region Recognition", "Cont", 182),
          ("Multi-region Recognition", "Mul", 263),
          ("Coordinate-based Region Recognition", "Coor", 433))),
)  # fmt: skip


@dataclass(frozen=True)
class Role:
    """What a label names, and which (task, subtask) asks for it, counts it and looks for it.

    None: EndoBench asks no such question about it, and none is made.
    """

    category: str
    naming: tuple[str, str] | None
    counting: tuple[str, str] | None = None
    presence: tuple[str, str] | None = None


def _same(task: str) -> tuple[str, str]:
    return task, task


LESION, ARTEFACT = "lesion", "artefact"
"""The role of a label of which nothing else is known; and that of text, glare and blur, about which
nothing is asked."""

ROLES: Mapping[str, Role] = MappingProxyType(
    {
        "lesion": Role(
            _LESION,
            ("Lesion Type Identification", "Lesion Classification"),
            _same("Lesion Quantification"),
            _same(PRESENCE.format("Lesion")),
        ),
        "polyp type": Role(_LESION, ("Lesion Type Identification", "Polyp Type Classification")),
        "grade": Role(_LESION, _same("Lesion Severity Grading")),
        "landmark": Role(
            _ANATOMY, _same("Landmark Identification"), None, _same(PRESENCE.format("Landmark"))
        ),
        "organ": Role(
            _ANATOMY, _same("Organ Identification"), None, _same(PRESENCE.format("Organ"))
        ),
        "instrument": Role(
            _SURGERY,
            None,
            ("Instrument Management", "Instrument Counting"),
            ("Instrument Management", "Instrument Presence Verification"),
        ),
        "preparation": Role(_SURGERY, _same("Preoperative Assessment")),
        "phase": Role(_SURGERY, ("Macro Phases Identification", "Surgical Phase Recognition")),
        "step": Role(_SURGERY, ("Macro Phases Identification", "Surgical Step Recognition")),
        "action": Role(_SURGERY, ("Micro Operation Analysis", "Surgical Action Recognition")),
        "treatment": Role(
            _SURGERY, ("Micro Operation Analysis", "Treatment Intervention Recognition")
        ),
        ARTEFACT: Role("", None),
    }
)
"""What labels may name, after the tasks of EndoBench, and what no question is about."""

SCENES: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "Gastroscopy": ("GS", 583),
        "Colonoscopy": ("CS", 1888),
        "Capsule Endoscopy": ("CE", 1678),
        "Surgical Endoscopy": ("SE", 2683),
    }
)
"""Abbreviation and count, as the table of results implies; the text says CS 1848, SE 2723."""

PROMPTS: Mapping[str, str] = MappingProxyType(
    {"box": "Box", "contour": "Cont", "multi": "Mul", "coordinate": "Coor"}
)
"""The visual prompts of Region Recognition, and the subtask each is.

These are the four columns of Table 3: how a question points at the region that it is about.
"""

GRANULARITIES: Mapping[str, int | None] = MappingProxyType(
    {IMAGE_LEVEL: 5521, "box": 433, "contour": 182, "multi-box": None, "multi-contour": None}
)
"""The five levels that the text names, and how many questions each has (None: not published).

They tell what is drawn into the image, the columns of Table 3 how a question points; of the
figure by five levels (Figure 8) no numbers are printed. "Box" and "Cont" are levels. "Mul" is
either of the two of several regions, which the words of its questions tell apart. "Coor" draws
nothing, so its questions are image-level. Region Selection, a task of its own that Table 3 does
not have, draws four boxes: multi-box. So multi-box and multi-contour have 433 + 263 questions
together, and image-level has all but these, Box and Cont: 6,832 - 433 - 182 - 263 - 433.
"""
SEVERAL = "multi-region"
"""The granularity of a question about several regions that names neither boxes nor contours."""
_SAYS_BOX = re.compile(r"\b(box(es|ed)?|rectang\w+|squares?)\b")
_SAYS_CONTOUR = re.compile(r"\b(contour\w*|outlines?)\b")
"""Not "outlined": a region can be outlined by a rectangle."""

_OTHERWISE = MappingProxyType(
    {
        "lesion type recognition": "Lesion Type Identification",
        "lesion grading": "Lesion Severity Grading",
        "polyp counting": "Lesion Quantification",
        "lesion counting": "Lesion Quantification",
        "macro phase identification": "Macro Phases Identification",
        "surgery": "Surgical Endoscopy",
        "surgical": "Surgical Endoscopy",
        "gastroscope": "Gastroscopy",
        "colonoscope": "Colonoscopy",
        "capsule": "Capsule Endoscopy",
        "wce": "Capsule Endoscopy",
        "wireless capsule endoscopy": "Capsule Endoscopy",
        "bounding box": "Bounding-box-based Region Recognition",
        "contour": "Contour-based Region Recognition",
        "multi region": "Multi-region Recognition",
        "coordinate": "Coordinate-based Region Recognition",
    }
)
"""Other wordings that mean the same, in lower case without punctuation."""


def _plain(name: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", name.lower()))


def _table() -> dict[str, str]:
    pairs = [(n, t.name) for t in TASKS for n in (t.name, t.short)]
    pairs += [(n, s) for t in TASKS for s, short, _ in t.subtasks for n in (s, short)]
    pairs += [(n, scene) for scene, (short, _) in SCENES.items() for n in (scene, short)]
    return {_plain(said): name for said, name in [*pairs, *_OTHERWISE.items()]}


_ALIASES = _table()


def named(said: str) -> str:
    """A task's, subtask's or scene's name in the table's spelling; another as it stands."""
    return _ALIASES.get(_plain(said), said.strip())


def visual_prompt(task: str, subtask: str) -> str:
    """Which visual prompt a question has: by the subtask of Region Recognition."""
    if task == "Region Recognition":
        for prompt in ("coordinate", "contour", "multi", "box"):  # "coordinates of a box"
            if prompt in subtask.lower():
                return prompt
    return IMAGE_LEVEL


def granularity(task: str, subtask: str, question: str) -> str:
    """What is drawn into a question's image: one of GRANULARITIES, or SEVERAL."""
    if task == "Region Selection":
        return "multi-box"
    prompt = visual_prompt(task, subtask)
    if prompt == "multi":
        said = question.lower()
        boxes, contours = bool(_SAYS_BOX.search(said)), bool(_SAYS_CONTOUR.search(said))
        return SEVERAL if boxes == contours else "multi-box" if boxes else "multi-contour"
    return prompt if prompt in GRANULARITIES else IMAGE_LEVEL


def category_of(task: str) -> str:
    """EndoBench's category of a task, of those made here that it does not have, too; else ""."""
    known = {t.name: t.category for t in TASKS} | {POSITION: _SPACE}
    known |= {role.presence[0]: role.category for role in ROLES.values() if role.presence}
    return known.get(task, "")


def task_names() -> list[str]:
    """The twelve, in the order of the categories."""
    return [task.name for task in TASKS]
