"""The same object by WordNet: synonyms, or one a kind of the other.

WordNet (Miller, Communications of the ACM, 1995), read from its own database files as they
come with Princeton's releases 3.0 and 3.1 (formats: wndb(5WN)) and with Debian's package
``wordnet-base``. Only nouns are read; NLTK's reader wants a dozen further files, not all of
which distributions carry. `EveryWay` is what our measurements compare names by; in a SPEC.toml,
`words = "adaptive_vtt.experiments.reic.wordnet:EveryWay"` in [oracle] takes it.
"""

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.captions.sameness import AnyOf, Folding, Matcher, Thesaurus, singular

from .embeddings import THRESHOLD, EmbeddingSame, MiniLM

FOLDER_VARIABLE = "WNSEARCHDIR"
"""The environment variable by which WordNet's own programs find their database."""
FILES = ("index.noun", "data.noun", "noun.exc")
PEOPLE = "18"
"""The number of the lexicographers' file noun.person (lexnames(5WN))."""
SENSES, MIN_DEPTH = 3, 4
"""Chosen on the calibrating half of pairs.tsv; see `experiments/reic/calibration.py`."""
INSTALL = (
    "Debian: apt install wordnet-base puts it into /usr/share/wordnet; elsewhere unpack "
    "WNdb-3.0 from wordnet.princeton.edu"
)


def wordnet_folder() -> Path | None:
    """Return the folder that $WNSEARCHDIR names, None if it is not set."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return Path(folder) if folder else None


class WordNetSame(Matcher):
    """One phrase is the other's synonym, or a hyponym of it, however far, either way.

    ``folder``: where the database files are; by default $WNSEARCHDIR. A phrase that WordNet
    does not have is looked up by its end: "kitchen table" as a table, "hot dog" as itself.
    ``senses``: how many senses of a word count, the most frequent first. Senses by which a
    word for something else is said of people (cat, dog, cow, bird, sheep) never count.
    ``least_depth``: how many steps from the root "entity", on the longest way, a word must
    lie to be a kind that others can be of; with 0, REIC's plain rule, everything is a kind
    of "object", with 4 pizza is still food. Raises InputError for a folder without the files.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        senses: int = SENSES,
        least_depth: int = MIN_DEPTH,
    ) -> None:
        super().__init__()
        if senses < 1 or least_depth < 0:
            raise InputError(
                "WordNet: expected senses of at least 1 and a least_depth of at least 0, "
                f"got {senses} and {least_depth}"
            )
        self.nouns = Nouns(folder)
        self.senses = senses
        self.least_depth = least_depth
        self.fingerprint = f"WordNet (senses: {senses}, least depth: {least_depth})"

    def compare(self, one: str, other: str) -> bool:
        first, second = (self._senses(phrase) for phrase in (one, other))
        return any(self._related(a, b) for a in first for b in second)

    def _senses(self, phrase: str) -> list[int]:
        senses = self.nouns.senses(phrase)[: self.senses]
        person = bool(senses) and self.nouns.is_person(senses[0])
        return [sense for sense in senses if person or not self.nouns.is_person(sense)]

    def _related(self, one: int, other: int) -> bool:
        if one == other:
            return True
        depth, nouns = self.least_depth, self.nouns
        return (one in nouns.above(other) and nouns.depth(one) >= depth) or (
            other in nouns.above(one) and nouns.depth(other) >= depth
        )


class Nouns:
    """WordNet's noun synsets, known by their offsets in data.noun."""

    def __init__(self, folder: Path | None) -> None:
        folder = folder or wordnet_folder()
        if folder is None:
            raise InputError(
                f"WordNet: expected the folder of its database, as an option or in "
                f"${FOLDER_VARIABLE}; {INSTALL}"
            )
        for name in FILES:
            if not (folder / name).is_file():
                raise InputError(f"WordNet: folder {str(folder)!r} has no file {name}; {INSTALL}")
        self.folder = folder
        self._above: dict[int, frozenset[int]] = {}
        self._depth: dict[int, int] = {}

    def senses(self, phrase: str) -> list[int]:
        """Return the synsets of a lower-case phrase or, failing that, of its end; most frequent
        first.
        """
        words = phrase.split()
        for start in range(len(words)):
            for name in self._forms(words[start:]):
                if name in self._index:
                    return self._offsets(name)
        return []

    def _offsets(self, name: str) -> list[int]:
        fields = self._index[name].split()  # n, how many senses, ..., their offsets
        try:
            return [int(offset) for offset in fields[-int(fields[1]) :]]
        except (ValueError, IndexError):
            raise InputError(
                f"WordNet: expected senses of {name!r} in {self.folder / 'index.noun'}, "
                f"got {' '.join(fields)[:40]!r}"
            ) from None

    def is_person(self, synset: int) -> bool:
        """Return whether WordNet's lexicographers filed it under people."""
        return self._fields(synset)[1] == PEOPLE

    def above(self, synset: int) -> frozenset[int]:
        """Return all that it is a kind or an instance of."""
        if synset not in self._above:
            nearest = self._hypernyms(synset)
            self._above[synset] = frozenset(nearest).union(*map(self.above, nearest))
        return self._above[synset]

    def depth(self, synset: int) -> int:
        """Return the steps to the root on the longest way; 0 for "entity"."""
        if synset not in self._depth:
            ways = [self.depth(near) for near in self._hypernyms(synset)]
            self._depth[synset] = 1 + max(ways, default=-1)
        return self._depth[synset]

    def _forms(self, words: list[str]) -> Iterator[str]:
        """Return how a phrase may be written in the index, the plainest first."""
        *front, last = words
        for end in dict.fromkeys((last, self._exceptions.get(last, last), singular(last))):
            for joint in ("_", "-", "") if front else ("",):
                yield joint.join([*front, end])

    def _hypernyms(self, synset: int) -> list[int]:
        fields = self._fields(synset)
        at = 4 + 2 * int(fields[3], 16)  # past the synonyms: how many pointers, then those
        pointers = fields[at + 1 : at + 1 + 4 * int(fields[at])]
        return [
            int(to)
            for symbol, to in zip(pointers[::4], pointers[1::4], strict=True)
            if symbol in ("@", "@i")
        ]

    def _fields(self, synset: int) -> list[str]:
        """Return the fields of data.noun at this offset, up to the gloss."""
        line = self._data[synset : self._data.find(b"\n", synset)].decode()
        fields = line.partition(" | ")[0].split()
        if not fields or fields[0] != f"{synset:08d}":
            raise InputError(
                f"WordNet: {self.folder / 'data.noun'} has no synset at byte {synset}, where "
                "index.noun says that one is; expected files of one release"
            )
        return fields

    @cached_property
    def _index(self) -> dict[str, str]:
        text = (self.folder / "index.noun").read_text(encoding="utf-8")
        parted = (line.partition(" ") for line in text.splitlines() if not line.startswith(" "))
        return {word: rest for word, _, rest in parted}

    @cached_property
    def _exceptions(self) -> dict[str, str]:
        """Return irregular plural -> singular."""
        lines = (self.folder / "noun.exc").read_text(encoding="utf-8").splitlines()
        return {plural: word for plural, word, *_ in map(str.split, filter(str.strip, lines))}

    @cached_property
    def _data(self) -> bytes:
        return (self.folder / "data.noun").read_bytes()


class EveryWay(AnyOf):
    """Compare by number and last words, the list of everyday things, WordNet if its folder is known
    (default: $WNSEARCHDIR), and MiniLM if it is installed.
    """

    def __init__(self, folder: Path | None = None) -> None:
        ways: list[Matcher] = [Folding(), Thesaurus()]
        if folder or wordnet_folder():
            ways.append(WordNetSame(folder))
        if MiniLM.installed():
            ways.append(EmbeddingSame(MiniLM(), THRESHOLD))
        super().__init__(ways)
