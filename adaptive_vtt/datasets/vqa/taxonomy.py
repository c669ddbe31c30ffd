"""EndoBench's tasks, subtasks, scenes and visual prompts, with their numbers of questions, and the
wordings of built questions. The tables are in ``data``.
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
    """One of EndoBench's twelve tasks.

    Attributes:
        name: Its name.
        short: Its abbreviation.
        category: Its category.
        questions: Its number of questions.
        subtasks: (name, abbreviation, number of questions) of each subtask.
    """

    name: str
    short: str
    category: str
    questions: int
    subtasks: tuple[tuple[str, str, int], ...] = ()


def tuples_of(name: str) -> Table:
    """Return the content of a TOML file in ``data``, with lists as tuples."""
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
    """A kind of thing that labels name, such as a lesion.

    Attributes:
        category: Its category in EndoBench.
        naming: (Task, subtask) of questions for its name; None: EndoBench has none.
        counting: The same for its number.
        presence: The same for its presence.
    """

    category: str
    naming: tuple[str, str] | None = None
    counting: tuple[str, str] | None = None
    presence: tuple[str, str] | None = None


LESION, ARTEFACT = "lesion", "artefact"
"""The default role; and that of text, glare and blur, about which no question is asked."""

ROLES = {name: Role(**fields) for name, fields in _DATA["roles"].items()}
"""Name -> role."""

PLACES: Mapping[str, tuple[str, str]] = _DATA["places"]
"""Kind of built question about places -> task and subtask."""
SCENES: Mapping[str, tuple[str, int]] = _DATA["scenes"]
"""Scene -> abbreviation and number of questions."""
PROMPTS: Mapping[str, str] = MappingProxyType(
    {"box": "Box", "contour": "Cont", "multi": "Mul", "coordinate": "Coor"}
)
"""Visual prompt of Region Recognition, which is how a question points at its region -> abbreviation
of the subtask, in the four columns of Table 3."""

GRANULARITIES: Mapping[str, int | None] = MappingProxyType(
    {IMAGE_LEVEL: 5521, "box": 433, "contour": 182, "multi-box": None, "multi-contour": None}
)
"""Granularity, which is the drawing in the image -> number of questions (None: not published).

The paper's text names these five levels; its Figure 8 shows them without numbers. They follow from
the subtasks of Table 3: "Box" and "Cont" are levels. "Mul" is multi-box or multi-contour, by the
words of each question. "Coor" draws nothing, so it is image-level. Region Selection, which Table 3
does not have, draws four boxes, so it is multi-box. So multi-box and multi-contour have 433 + 263
questions together, and image-level has the rest: 6,832 - 433 - 182 - 263 - 433.
"""
SEVERAL = "multi-region"
"""Granularity of a question about several regions that names neither boxes nor contours."""
_SAYS_BOX = re.compile(r"\b(box(es|ed)?|rectang\w+|squares?)\b")
_SAYS_CONTOUR = re.compile(r"\b(contour\w*|outlines?)\b")
"""Does not match "outlined", as a region can be outlined by a rectangle."""


def _plain(name: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", name.lower()))


def _table() -> dict[str, str]:
    pairs = [(n, t.name) for t in TASKS for n in (t.name, t.short)]
    pairs += [(n, s) for t in TASKS for s, short, _ in t.subtasks for n in (s, short)]
    pairs += [(n, scene) for scene, (short, _) in SCENES.items() for n in (scene, short)]
    return {_plain(alias): name for alias, name in [*pairs, *_DATA["otherwise"].items()]}


_ALIASES = _table()


def named(name: str) -> str:
    """Return the full name of a task, subtask or scene; an unknown name is unchanged."""
    return _ALIASES.get(_plain(name), name.strip())


def visual_prompt(task: str, subtask: str) -> str:
    """Return the visual prompt of a question, one of PROMPTS or IMAGE_LEVEL."""
    if task == "Region Recognition":
        for prompt in ("coordinate", "contour", "multi", "box"):  # "coordinates of a box" is first
            if prompt in subtask.lower():
                return prompt
    return IMAGE_LEVEL


def granularity(task: str, subtask: str, question: str) -> str:
    """Return the granularity of a question: one of GRANULARITIES, or SEVERAL."""
    if task == "Region Selection":
        return "multi-box"
    prompt = visual_prompt(task, subtask)
    if prompt == "multi":
        words = question.lower()
        boxes, contours = bool(_SAYS_BOX.search(words)), bool(_SAYS_CONTOUR.search(words))
        return SEVERAL if boxes == contours else "multi-box" if boxes else "multi-contour"
    return prompt if prompt in GRANULARITIES else IMAGE_LEVEL


def category_of(task: str) -> str:
    """Return the category of a task of EndoBench or of a built question; "" for another task."""
    known = {t.name: t.category for t in TASKS}
    known |= {role.presence[0]: role.category for role in ROLES.values() if role.presence}
    return known.get(task, "")


def task_names() -> list[str]:
    """Return the names of the twelve tasks, in the order of their categories."""
    return [task.name for task in TASKS]


# -- wordings of questions, and words that identify the role of a label ----------------------------


def _wordings() -> Mapping[str, tuple[str, ...]]:
    wordings = tuples_of("wordings")
    naming = wordings.pop("type")
    for role, thing in naming["things"].items():
        wordings[f"type/{role}"] = tuple(w.replace("{thing}", thing) for w in naming["words"])
    return MappingProxyType(wordings)


WORDS = _wordings()
"""Kind of question, or "type/ROLE" -> templates; one is drawn per question."""
_ROLE_WORDS = {role: "|".join(words) for role, words in tuples_of("role_words").items()}


def role_of(name: str) -> str:
    """Return the name of a label's role by its words, LESION if none of them identifies it.

    "clip_applier", "ClipApplier" and "clip-applier" are the same words.
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", name).lower()
    for role, pattern in _ROLE_WORDS.items():
        if re.search(rf"\b({pattern})\b", words):
            return role
    return LESION
