"""Patterns that stand in TOML files, where {name} stands for a list of words or another piece."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any


def read_table(name: str) -> Mapping[str, Any]:
    """Return the TOML file of this name in data/."""
    return tomllib.loads(files(__package__).joinpath("data", name).read_text(encoding="utf-8"))


def any_of(words: Iterable[str]) -> str:
    """Return the pattern of any of these words, longer ones first; a * stands for any ending."""
    ordered = sorted(words, key=len, reverse=True)
    return "(?:" + "|".join(re.sub(r"(?<=\w)\*", r"\\w*", word) for word in ordered) + ")"


class Patterns:
    """The patterns of a ``table``: ``one`` compiled by name, ``several`` as lists of texts.

    ``lists``: words by name, which patterns may name, too.
    """

    def __init__(self, table: Mapping[str, Any], lists: Mapping[str, Iterable[str]]) -> None:
        self._pieces = {name: any_of(words) for name, words in lists.items()}
        for name, piece in table["pieces"].items():
            self._pieces[name] = self.filled(piece)
        self.one = {n: re.compile(self.filled(text)) for n, text in table["patterns"].items()}
        self.several = {n: [*map(self.filled, texts)] for n, texts in table["several"].items()}

    def filled(self, text: str) -> str:
        """Return a pattern with its pieces; a name in braces that is none of them stays."""
        return re.sub(r"\{([a-z_]+)\}", lambda match: self._pieces.get(match[1], match[0]), text)
