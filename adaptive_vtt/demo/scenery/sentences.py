"""Sentences that name things, in varied forms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from .kinds import KINDS
from .vocabulary import EVERYDAY, Vocabulary

_NUMBERS = ("no", "one", "two", "three", "four")
_ACTIONS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("person", "umbrella"): "under",
        ("person", "kite"): "flying",
        ("person", "ball"): "playing with",
        ("dog", "ball"): "playing with",
        ("boat", "bird"): "below",
    }
)
_FORMS = (
    "{all}{where}",
    "there {is_} {all}{where}",
    "a picture of {all}{where}",
    "{first} next to {rest}{where}",
    "{first} with {rest}{where}",
    "{first} and {rest}{where}",
    "{rest} near {first}{where}",
)
_PLAIN = 3  # the forms that need no second thing
EMPTY = "It is not clear what to see here."
"""What is said of a picture without anything to name: it has no noun."""


@dataclass(frozen=True)
class Item:
    """A name of the vocabulary, how many there are, and which of its words is used: 0 for
    the usual one, else one of the others."""

    name: str
    count: int
    word: int = 0
    vocabulary: Vocabulary = EVERYDAY

    @property
    def plural(self) -> bool:
        """Whether there are several, which of blood there cannot be."""
        return self.count > 1 and not self.vocabulary.words[self.name].mass

    @property
    def worded(self) -> str:
        """The name as it stands in a caption: in the plural for more than one."""
        words = self.vocabulary.words[self.name]
        forms = ((words.singular, words.plural), *words.others)[self.word]
        return forms[self.plural]

    @property
    def phrase(self) -> str:
        """The name with its article or number."""
        if self.vocabulary.words[self.name].mass:
            return f"some {self.worded}"
        if self.plural:
            number = _NUMBERS[self.count] if self.count < len(_NUMBERS) else "several"
            return f"{number} {self.worded}"
        return f"{'an' if self.worded[0] in 'aeiou' else 'a'} {self.worded}"


def compose(
    items: Sequence[Item], rng: np.random.Generator, setting: float
) -> tuple[str, tuple[str, ...]]:
    """A sentence that names all ``items``, and the name of each as it stands there.

    ``setting``: how often (0..1) the place is named, which is guessed from the items. They
    are all of one vocabulary.
    """
    form, where, wording = rng.random(3).tolist()
    if not items:
        return EMPTY, ()
    place = ""
    if where < setting:
        options = items[0].vocabulary.settings[_place(items)]
        place = " " + options[int(wording * len(options))]
    phrases = [item.phrase for item in items]
    template = _FORMS[int(form * (len(_FORMS) if len(items) > 1 else _PLAIN))]
    between = _ACTIONS.get((items[0].name, items[1].name)) if len(items) > 1 else None
    if between and " and " in template:
        template = "{first} " + between + " {rest}{where}"
    sentence = template.format(
        all=_listed(phrases),
        first=phrases[0],
        rest=_listed(phrases[1:]),
        where=place,
        is_="are" if items[0].plural else "is",
    )
    return sentence[0].upper() + sentence[1:] + ".", tuple(item.worded for item in items)


def _listed(phrases: Sequence[str]) -> str:
    if len(phrases) < 2:
        return "".join(phrases)
    return ", ".join(phrases[:-1]) + " and " + phrases[-1]


def _place(items: Sequence[Item]) -> str:
    """Where most of the things go; the first of several such places."""
    kinds = [KINDS[item.name] for item in items if item.name in KINDS]
    places = items[0].vocabulary.settings
    return max(places, key=lambda place: sum(place in kind.grounds for kind in kinds))
