"""The words in which questions are asked, and those that tell what a label names, from ``data``.

``paraphrasing`` gets more wordings of a chat model.
"""

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from .taxonomy import LESION


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("data", name).read_text(encoding="utf-8"))


def _wordings() -> Mapping[str, tuple[str, ...]]:
    told = _read("wordings.toml")
    naming = told.pop("type")
    for role, thing in naming["things"].items():
        told[f"type/{role}"] = [words.replace("{thing}", thing) for words in naming["words"]]
    return MappingProxyType({kind: tuple(words) for kind, words in told.items()})


WORDS = _wordings()
"""Wordings of each kind, "type/ROLE" among them; one is drawn per question."""
_ROLE_WORDS = {role: "|".join(words) for role, words in _read("role_words.toml").items()}


def role_of(name: str) -> str:
    """The role that a label's words tell of, one of ``taxonomy.ROLES``; where none does, lesion.

    "clip_applier", "ClipApplier" and "clip-applier" are the same words.
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", name).lower()
    fits = (role for role, told in _ROLE_WORDS.items() if re.search(rf"\b({told})\b", words))
    return next(fits, LESION)
