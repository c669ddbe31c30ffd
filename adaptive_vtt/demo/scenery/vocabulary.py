"""What kinds of things are called, what they are taken for, and what goes with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ...errors import unknown


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
"""How each place (``kinds.PLACES``) is told."""

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
