"""Names of objects, objects that they are taken for or occur with, and sentences about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from adaptive_vtt.errors import check_known

from .scene_plan import EVERYDAY as SCENES
from .scene_plan import KINDS


@dataclass(frozen=True)
class Words:
    """The words for one kind of object.

    Attributes:
        singular: The usual name.
        plural: Its plural.
        others: Other names with their plurals: synonyms or hyponyms in WordNet.
        mass: Whether it is a mass noun such as "blood", whose plural is its singular.
    """

    singular: str
    plural: str
    others: tuple[tuple[str, str], ...] = ()
    mass: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """The words of a captioner.

    Args:
        words: Name -> its words.
        taken_for: Kind that can be recognised -> name of another kind that it is mistaken for.
        goes_with: Kind -> names of objects that it often occurs with, the likeliest first.
        settings: Place -> phrases for it.

    Raises:
        InputError: A name has no words, or a kind is missing in ``goes_with``.
    """

    words: Mapping[str, Words]
    taken_for: Mapping[str, str]
    goes_with: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, tuple[str, ...]]

    def __repr__(self) -> str:
        return f"Vocabulary({len(self.taken_for)} kinds)"

    def __post_init__(self) -> None:
        companions = (name for names in self.goes_with.values() for name in names)
        for name in (*self.taken_for, *self.taken_for.values(), *companions):
            check_known("name", name, self.words, "vocabulary")
        for kind in self.taken_for:
            check_known("kind", kind, self.goes_with, "vocabulary, goes_with")


_ENDINGS = {"person": "people", "sheep": "sheep", "man": "men", "bus": "buses"}
_ENDINGS |= {"y": "ies", "ch": "ches", "x": "xes", "sh": "shes"}
_MASS = ("stool", "blood", "text", "bile", "mucus")


def _words(name: str, others: str) -> Words:
    def both(one: str) -> tuple[str, str]:
        return one, one if name in _MASS else _plural(one)

    return Words(*both(name), tuple(map(both, _names(others))), name in _MASS)


def _plural(name: str) -> str:
    for ending, irregular in _ENDINGS.items():
        if name.endswith(ending):
            return name.removesuffix(ending) + irregular
    return name + "s"


def _names(listed: str) -> tuple[str, ...]:
    return tuple(listed.split(", ")) if listed else ()


def _vocabulary(
    kinds: Sequence[tuple[str, str, str, str]], settings: Mapping[str, tuple[str, ...]]
) -> Vocabulary:
    """Return a vocabulary.

    Args:
        kinds: For each kind its name, other names, the kind that it is taken for (no synonym or
            hyponym in WordNet), and kinds that it often occurs with. Lists are joined by ", ".
        settings: Place -> phrases for it.
    """
    others = {taken: "" for _, _, taken, _ in kinds} | {kind: names for kind, names, _, _ in kinds}
    return Vocabulary(
        MappingProxyType({name: _words(name, names) for name, names in others.items()}),
        MappingProxyType({kind: taken for kind, _, taken, _ in kinds}),
        MappingProxyType({kind: _names(companions) for kind, _, _, companions in kinds}),
        MappingProxyType(settings),
    )


EVERYDAY = _vocabulary(
    [(n, one["others"], one["taken_for"], one["goes_with"]) for n, one in SCENES.items()],
    {
        "room": ("in a room", "inside a house"),
        "street": ("on a street", "in a city"),
        "park": ("in a park", "on a lawn"),
        "beach": ("on a beach", "by the sea"),
    },
)
"""Words for drawn scenes (``drawn_scenes``), with the places of ``scene_plan.PLACES``."""

ENDOSCOPY = _vocabulary(
    (
        ("polyp", "colon polyp", "fold", "instrument, blood, stool"),
        ("instrument", "surgical instrument", "tube", "polyp, blood, text"),
        ("stool", "liquid stool", "mucus", "polyp, blood, text"),
        ("blood", "", "bile", "polyp, instrument, stool"),
        ("text", "", "reflection", "polyp, instrument, stool"),
    ),
    {"colon": ("in the colon", "inside the bowel")},
)
"""Words for frames of colonoscopies; the kinds are the phantom's concepts that have masks."""


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
_PLAIN = 3  # forms that need no second object
EMPTY = "It is not clear what to see here."
"""The caption of a picture without recognised objects: it has no noun."""


@dataclass(frozen=True)
class Item:
    """Objects with one name.

    Attributes:
        name: Name in the vocabulary.
        count: Number of objects.
        word: Which of its words is used: 0 for the usual one, else one of the others.
        vocabulary: The vocabulary.
    """

    name: str
    count: int
    word: int = 0
    vocabulary: Vocabulary = EVERYDAY

    @property
    def plural(self) -> bool:
        """Whether the name is in the plural."""
        return self.count > 1 and not self.vocabulary.words[self.name].mass

    @property
    def noun(self) -> str:
        """The name as it is written in a caption, in the singular or the plural."""
        words = self.vocabulary.words[self.name]
        forms = ((words.singular, words.plural), *words.others)[self.word]
        return forms[self.plural]

    @property
    def phrase(self) -> str:
        """The name with its article or number."""
        if self.vocabulary.words[self.name].mass:
            return f"some {self.noun}"
        if self.plural:
            number = _NUMBERS[self.count] if self.count < len(_NUMBERS) else "several"
            return f"{number} {self.noun}"
        return f"{'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}"


def compose(
    items: Sequence[Item], rng: np.random.Generator, setting: float
) -> tuple[str, tuple[str, ...]]:
    """Return a sentence that names all items, and the noun of each.

    Args:
        items: The objects, of one vocabulary.
        rng: Source of the choice of words.
        setting: Share of sentences (0..1) that name the place, which is guessed from the items.
    """
    form, where, phrase = rng.random(3).tolist()
    if not items:
        return EMPTY, ()
    place = ""
    if where < setting:
        options = items[0].vocabulary.settings[_place(items)]
        place = " " + options[int(phrase * len(options))]
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
    return sentence[0].upper() + sentence[1:] + ".", tuple(item.noun for item in items)


def _listed(phrases: Sequence[str]) -> str:
    if len(phrases) < 2:
        return "".join(phrases)
    return ", ".join(phrases[:-1]) + " and " + phrases[-1]


def _place(items: Sequence[Item]) -> str:
    """Return the first of the places where the most kinds of the items occur."""
    kinds = [KINDS[item.name] for item in items if item.name in KINDS]
    places = items[0].vocabulary.settings
    return max(places, key=lambda place: sum(place in kind.grounds for kind in kinds))
