"""The words in which questions are asked, and those that tell what a label names, from ``data``.

``paraphrasing`` gets more wordings of a chat model.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from .taxonomy import LESION, data_of


def _wordings() -> Mapping[str, tuple[str, ...]]:
    told = data_of("wordings")
    naming = told.pop("type")
    for role, thing in naming["things"].items():
        told[f"type/{role}"] = tuple(w.replace("{thing}", thing) for w in naming["words"])
    return MappingProxyType(told)


WORDS = _wordings()
"""Wordings of each kind, "type/ROLE" among them; one is drawn per question."""
_ROLE_WORDS = {role: "|".join(words) for role, words in data_of("role_words").items()}


def role_of(name: str) -> str:
    """The role that a label's words tell of, one of ``taxonomy.ROLES``; where none does, lesion.

    "clip_applier", "ClipApplier" and "clip-applier" are the same words.
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", name).lower()
    fits = (role for role, told in _ROLE_WORDS.items() if re.search(rf"\b({told})\b", words))
    return next(fits, LESION)
