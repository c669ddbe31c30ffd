"""What kinds of things are called and taken for, what goes with them, and sentences that say so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ..errors import unknown
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
            if name not in self.words:
                raise unknown("name", name, self.words, "vocabulary")
        for kind in self.taken_for:
            if kind not in self.goes_with:
                raise unknown("kind", kind, self.goes_with, "vocabulary, goes_with")


def _words(name: str, *others: str, plural: str = "") -> Words:
    return Words(name, plural or _plural(name), tuple((each, _plural(each)) for each in others))


def _mass(name: str, *others: str) -> Words:
    return Words(name, name, tuple((each, each) for each in others), mass=True)


def _plural(name: str) -> str:
    for ending, irregular in _ENDINGS.items():
        if name.endswith(ending):
            return name.removesuffix(ending) + irregular
    return name + "s"


_ENDINGS = {"man": "men", "y": "ies", "ch": "ches", "x": "xes", "sh": "shes", "bus": "buses"}

WORDS: Mapping[str, Words] = MappingProxyType(
    {
        "person": _words("person", "man", "woman", plural="people"),
        "dog": _words("dog", "puppy"),
        "cat": _words("cat"),
        "horse": _words("horse", "pony"),
        "sheep": _words("sheep", plural="sheep"),
        "bird": _words("bird", "pigeon"),
        "car": _words("car", "automobile"),
        "bus": _words("bus", "coach"),
        "bicycle": _words("bicycle", "bike"),
        "boat": _words("boat"),
        "umbrella": _words("umbrella"),
        "kite": _words("kite"),
        "ball": _words("ball", "beach ball"),
        "tree": _words("tree"),
        "chair": _words("chair", "armchair"),
        "table": _words("table", "dining table"),
        "bed": _words("bed", "double bed"),
        "lamp": _words("lamp", "floor lamp"),
        "clock": _words("clock", "wall clock"),
        "cup": _words("cup", "coffee cup"),
        "bottle": _words("bottle", "wine bottle"),
        "banana": _words("banana"),
        "apple": _words("apple"),
        "book": _words("book", "textbook"),
        "laptop": _words("laptop", "laptop computer"),
        # not drawn anywhere: what drawn things may be taken for
        "airplane": _words("airplane"),
        "balloon": _words("balloon"),
        "bench": _words("bench"),
        "box": _words("box"),
        "bush": _words("bush"),
        "cow": _words("cow"),
        "flag": _words("flag"),
        "goat": _words("goat"),
        "lemon": _words("lemon"),
        "mirror": _words("mirror"),
        "motorcycle": _words("motorcycle"),
        "orange": _words("orange"),
        "sofa": _words("sofa"),
        "statue": _words("statue"),
        "television": _words("television"),
        "tent": _words("tent"),
        "train": _words("train"),
        "truck": _words("truck"),
        "vase": _words("vase"),
    }
)
"""What each kind is called."""

TAKEN_FOR: Mapping[str, str] = MappingProxyType(
    {
        "person": "statue",
        "dog": "cat",
        "cat": "dog",
        "horse": "cow",
        "sheep": "goat",
        "bird": "airplane",
        "car": "truck",
        "bus": "train",
        "bicycle": "motorcycle",
        "boat": "tent",
        "umbrella": "tent",
        "kite": "flag",
        "ball": "balloon",
        "tree": "bush",
        "chair": "bench",
        "table": "box",
        "bed": "sofa",
        "lamp": "vase",
        "clock": "mirror",
        "cup": "bottle",
        "bottle": "cup",
        "banana": "lemon",
        "apple": "orange",
        "book": "box",
        "laptop": "television",
    }
)
"""What each kind is mistaken for; never the same thing or a kind of it in WordNet."""

GOES_WITH: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "person": ("dog", "ball", "umbrella"),
        "dog": ("ball", "person", "cat"),
        "cat": ("ball", "chair", "dog"),
        "horse": ("person", "tree", "dog"),
        "sheep": ("horse", "tree", "dog"),
        "bird": ("tree", "kite", "boat"),
        "car": ("bus", "person", "tree"),
        "bus": ("car", "person", "bicycle"),
        "bicycle": ("person", "car", "tree"),
        "boat": ("bird", "person", "umbrella"),
        "umbrella": ("person", "bottle", "ball"),
        "kite": ("bird", "person", "ball"),
        "ball": ("dog", "person", "kite"),
        "tree": ("bird", "bicycle", "person"),
        "chair": ("table", "lamp", "cat"),
        "table": ("cup", "chair", "bottle"),
        "bed": ("lamp", "clock", "book"),
        "lamp": ("bed", "chair", "book"),
        "clock": ("lamp", "chair", "table"),
        "cup": ("table", "laptop", "banana"),
        "bottle": ("cup", "apple", "person"),
        "banana": ("apple", "cup", "table"),
        "apple": ("banana", "bottle", "table"),
        "book": ("lamp", "cup", "chair"),
        "laptop": ("cup", "book", "chair"),
    }
)
"""What one expects beside each kind, the likeliest first."""

SETTINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "room": ("in a room", "inside a house"),
        "street": ("on a street", "in a city"),
        "park": ("in a park", "on a lawn"),
        "beach": ("on a beach", "by the sea"),
    }
)
"""How each place (``scene_plan.PLACES``) is told."""

EVERYDAY = Vocabulary(WORDS, TAKEN_FOR, GOES_WITH, SETTINGS)
"""For drawn scenes (``demo.drawn_scenes``)."""

ENDOSCOPY = Vocabulary(
    words=MappingProxyType(
        {
            "polyp": _words("polyp", "colon polyp"),
            "instrument": _words("instrument", "surgical instrument"),
            "stool": _mass("stool", "liquid stool"),
            "blood": _mass("blood"),
            "text": _mass("text"),
            # not in the phantom's masks: what things there may be taken for
            "bile": _mass("bile"),
            "fold": _words("fold"),
            "mucus": _mass("mucus"),
            "reflection": _words("reflection"),
            "tube": _words("tube"),
        }
    ),
    taken_for=MappingProxyType(
        {
            "polyp": "fold",
            "instrument": "tube",
            "stool": "mucus",
            "blood": "bile",
            "text": "reflection",
        }
    ),
    goes_with=MappingProxyType(
        {
            "polyp": ("instrument", "blood", "stool"),
            "instrument": ("polyp", "blood", "text"),
            "stool": ("polyp", "blood", "text"),
            "blood": ("polyp", "instrument", "stool"),
            "text": ("polyp", "instrument", "stool"),
        }
    ),
    settings=MappingProxyType({"colon": ("in the colon", "inside the bowel")}),
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
