"""What kinds of things are called and taken for, what goes with them, and sentences that say so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from adaptive_vtt.errors import check_known

from .scene_plan import EVERYDAY as SCENES
from .scene_plan import KINDS


@dataclass(frozen=True)
class Words:
    """A name's singular and plural; ``others``: names that WordNet holds to be the same thing
    or a kind of it, each with its plural too. ``mass``: it has no number, as blood has none;
    its plural is its singular."""

    singular: str
    plural: str
    others: tuple[tuple[str, str], ...] = ()
    mass: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """What a captioner can say.

    ``words``: of each name. ``taken_for``: for each kind of thing that can be seen, the name
    of what it is mistaken for, which must be another thing. ``goes_with``: for each kind, the
    names of what one expects beside it, the likeliest first. ``settings``: how each place is
    told. Raises InputError for a name without words and a kind that nothing goes with.
    """

    words: Mapping[str, Words]
    taken_for: Mapping[str, str]
    goes_with: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, tuple[str, ...]]

    def __repr__(self) -> str:
        return f"Vocabulary({len(self.taken_for)} kinds)"

    def __post_init__(self) -> None:
        beside = (name for names in self.goes_with.values() for name in names)
        for name in (*self.taken_for, *self.taken_for.values(), *beside):
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
    """``kinds``: each with its other names, what it is taken for (never the same thing or a kind of
    it in WordNet), and what one expects beside it."""
    called = {taken: "" for _, _, taken, _ in kinds} | {kind: names for kind, names, _, _ in kinds}
    return Vocabulary(
        MappingProxyType({name: _words(name, others) for name, others in called.items()}),
        MappingProxyType({kind: taken for kind, _, taken, _ in kinds}),
        MappingProxyType({kind: _names(beside) for kind, _, _, beside in kinds}),
        MappingProxyType(settings),
    )


EVERYDAY = _vocabulary(
    [(n, one["others"], one["taken_for"], one["beside"]) for n, one in SCENES.items()],
    {
        "room": ("in a room", "inside a house"),
        "street": ("on a street", "in a city"),
        "park": ("in a park", "on a lawn"),
        "beach": ("on a beach", "by the sea"),
    },
)
"""For drawn scenes (``drawn_scenes``); places are those of ``scene_plan.PLACES``."""

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
"""For frames of colonoscopies; its kinds are the phantom's concepts that have masks."""


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
