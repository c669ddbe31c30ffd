"""EndoBench's tasks, subtasks, scenes and visual prompts, how many questions each has, and in which
words they are asked: what stands in ``data``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ...utils.files import Table, data_of

IMAGE_LEVEL = "image-level"


@dataclass(frozen=True)
class Task:
    """One of the twelve; ``subtasks``: (name, abbreviation, questions) each, if it has any."""

    name: str
    short: str
    category: str
    questions: int
    subtasks: tuple[tuple[str, str, int], ...] = ()


def tuples_of(name: str) -> Table:
    """Return what a TOML file of ``data`` holds, lists as tuples."""
    table: Table = _frozen(data_of(__package__, f"{name}.toml"))
    return table


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _frozen(inner) for name, inner in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


_DATA = tuples_of("taxonomy")
TASKS = tuple(Task(**fields) for fields in _DATA["tasks"])


@dataclass(frozen=True)
class Role:
    """The kind of thing that a label names, and the (task, subtask) that ask for its name,
    number and presence.

    None: EndoBench has no such question about it, and none is made.
    """

    category: str
    naming: tuple[str, str] | None = None
    counting: tuple[str, str] | None = None
    presence: tuple[str, str] | None = None


LESION, ARTEFACT = "lesion", "artefact"
"""The default role of a label; and that of text, glare and blur, about which nothing is asked."""

ROLES = {name: Role(**fields) for name, fields in _DATA["roles"].items()}
"""The things that labels may name, after the tasks of EndoBench."""

PLACES: Mapping[str, tuple[str, str]] = _DATA["places"]
"""Kind of built question about places -> its task and subtask."""
SCENES: Mapping[str, tuple[str, int]] = _DATA["scenes"]
"""Scene -> its abbreviation and how many questions it has."""
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

They classify the drawing in the image, while the columns of Table 3 classify how a question points.
Figure 8 by five levels has no numbers. "Box" and "Cont" are levels. "Mul" is either of the two of
several regions, by the words of its questions. "Coor" draws nothing, so its questions are image-
level. Region Selection, a task that Table 3 does not have, draws four boxes: multi-box. So multi-
box and multi-contour have 433 + 263 questions together, and image-level has all but these, Box and
Cont: 6,832 - 433 - 182 - 263 - 433.
"""
SEVERAL = "multi-region"
"""The granularity of a question about several regions that names neither boxes nor contours."""
_SAYS_BOX = re.compile(r"\b(box(es|ed)?|rectang\w+|squares?)\b")
_SAYS_CONTOUR = re.compile(r"\b(contour\w*|outlines?)\b")
"""Not "outlined": a region can be outlined by a rectangle."""


def _plain(name: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", name.lower()))


def _table() -> dict[str, str]:
    pairs = [(n, t.name) for t in TASKS for n in (t.name, t.short)]
    pairs += [(n, s) for t in TASKS for s, short, _ in t.subtasks for n in (s, short)]
    pairs += [(n, scene) for scene, (short, _) in SCENES.items() for n in (scene, short)]
    return {_plain(alias): name for alias, name in [*pairs, *_DATA["otherwise"].items()]}


_ALIASES = _table()


def named(name: str) -> str:
    """Return a task's, subtask's or scene's name in the table's spelling; others unchanged."""
    return _ALIASES.get(_plain(name), name.strip())


def visual_prompt(task: str, subtask: str) -> str:
    """Return which visual prompt a question has: by the subtask of Region Recognition."""
    if task == "Region Recognition":
        for prompt in ("coordinate", "contour", "multi", "box"):  # "coordinates of a box"
            if prompt in subtask.lower():
                return prompt
    return IMAGE_LEVEL


def granularity(task: str, subtask: str, question: str) -> str:
    """Return what is drawn into a question's image: one of GRANULARITIES, or SEVERAL."""
    if task == "Region Selection":
        return "multi-box"
    prompt = visual_prompt(task, subtask)
    if prompt == "multi":
        words = question.lower()
        boxes, contours = bool(_SAYS_BOX.search(words)), bool(_SAYS_CONTOUR.search(words))
        return SEVERAL if boxes == contours else "multi-box" if boxes else "multi-contour"
    return prompt if prompt in GRANULARITIES else IMAGE_LEVEL


def category_of(task: str) -> str:
    """EndoBench's category of a task, of those made here that it does not have, too; else ""."""
    known = {t.name: t.category for t in TASKS}
    known |= {role.presence[0]: role.category for role in ROLES.values() if role.presence}
    return known.get(task, "")


def task_names() -> list[str]:
    """Return the twelve, in the order of the categories."""
    return [task.name for task in TASKS]


# -- the words in which questions are asked, and those that tell what a label names ----------------


def _wordings() -> Mapping[str, tuple[str, ...]]:
    wordings = tuples_of("wordings")
    naming = wordings.pop("type")
    for role, thing in naming["things"].items():
        wordings[f"type/{role}"] = tuple(w.replace("{thing}", thing) for w in naming["words"])
    return MappingProxyType(wordings)


WORDS = _wordings()
"""Wordings of each kind, "type/ROLE" among them; one is drawn per question."""
_ROLE_WORDS = {role: "|".join(words) for role, words in tuples_of("role_words").items()}


def role_of(name: str) -> str:
    """Return the role that a label's words name, one of ``ROLES``; else lesion.

    "clip_applier", "ClipApplier" and "clip-applier" are the same words.
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", name).lower()
    fits = (role for role, pattern in _ROLE_WORDS.items() if re.search(rf"\b({pattern})\b", words))
    return next(fits, LESION)
