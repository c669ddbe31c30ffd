"""Compare words by WordNet: two phrases are the same if they are synonyms or hyponyms.

The nouns of WordNet (Miller, Communications of the ACM, 1995) are read from its own database files
(formats: wndb(5WN)), of Princeton's releases 3.0 and 3.1 or Debian's package ``wordnet-base``.
NLTK's reader needs a dozen further files, which some distributions lack. Our measurements compare
names by `EveryWay`. In a SPEC.toml, write
`words = "adaptive_vtt.experiments.reic.wordnet:EveryWay"` under [oracle].
"""

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.captions.sameness import AnyOf, Folding, Matcher, Thesaurus, singular

from .embeddings import THRESHOLD, EmbeddingSame, MiniLM

FOLDER_VARIABLE = "WNSEARCHDIR"
"""Environment variable with the folder of the database, as for WordNet's own programs."""
FILES = ("index.noun", "data.noun", "noun.exc")
PEOPLE = "18"
"""The number of the lexicographers' file noun.person (lexnames(5WN))."""
SENSES, MIN_DEPTH = 3, 4
"""Defaults of ``WordNetSame``, chosen on one half of pairs.tsv; see ``calibration``."""
INSTALL = (
    "Debian: apt install wordnet-base puts it into /usr/share/wordnet; elsewhere unpack "
    "WNdb-3.0 from wordnet.princeton.edu"
)


def wordnet_folder() -> Path | None:
    """Return the folder that $WNSEARCHDIR names, None if it is not set."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return Path(folder) if folder else None


class WordNetSame(Matcher):
    """Matcher of phrases if one is the other's synonym or hyponym, direct or indirect.

    A phrase that WordNet lacks is looked up by its last words: "kitchen table" as "table". Senses
    that call people by the name of something else (cat, dog, cow, bird, sheep) never count.

    Args:
        folder: Folder of the database files; by default $WNSEARCHDIR.
        senses: Number of senses of a word that count, the most frequent first.
        least_depth: Least number of steps on the longest path from the root "entity" to a word that
            may have hyponyms. With 0, REIC's plain rule, everything is an "object"; with 4, pizza
            is still food.

    Raises:
        InputError: The folder lacks the files, or a number is out of range.
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
        """Return the synsets of a lower-case phrase, or of its last words; most frequent first."""
        words = phrase.split()
        for start in range(len(words)):
            for name in self._forms(words[start:]):
                if name in self._index:
                    return self._offsets(name)
        return []

    def _offsets(self, name: str) -> list[int]:
        fields = self._index[name].split()  # "n", the number of senses, ..., their offsets
        try:
            return [int(offset) for offset in fields[-int(fields[1]) :]]
        except (ValueError, IndexError):
            raise InputError(
                f"WordNet: expected senses of {name!r} in {self.folder / 'index.noun'}, "
                f"got {' '.join(fields)[:40]!r}"
            ) from None

    def is_person(self, synset: int) -> bool:
        """Return whether the synset is in the lexicographers' file of people."""
        return self._fields(synset)[1] == PEOPLE

    def above(self, synset: int) -> frozenset[int]:
        """Return all hypernyms of a synset, direct or indirect."""
        if synset not in self._above:
            nearest = self._hypernyms(synset)
            self._above[synset] = frozenset(nearest).union(*map(self.above, nearest))
        return self._above[synset]

    def depth(self, synset: int) -> int:
        """Return the number of steps on the longest path to the root "entity"."""
        if synset not in self._depth:
            depths = [self.depth(near) for near in self._hypernyms(synset)]
            self._depth[synset] = 1 + max(depths, default=-1)
        return self._depth[synset]

    def _forms(self, words: list[str]) -> Iterator[str]:
        """Return spellings of a phrase in the index, the plainest first."""
        *front, last = words
        for end in dict.fromkeys((last, self._exceptions.get(last, last), singular(last))):
            for joint in ("_", "-", "") if front else ("",):
                yield joint.join([*front, end])

    def _hypernyms(self, synset: int) -> list[int]:
        fields = self._fields(synset)
        at = 4 + 2 * int(fields[3], 16)  # after the synonyms: the number of pointers, then these
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
                f"WordNet: expected a synset at byte {synset} of {self.folder / 'data.noun'}, as "
                "index.noun names it, found none; use files of one release"
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
    """Matcher by number and last words, a list of everyday objects, WordNet and MiniLM.

    WordNet is used if its folder is known (default: $WNSEARCHDIR), and MiniLM if it is installed.
    """

    def __init__(self, folder: Path | None = None) -> None:
        matchers: list[Matcher] = [Folding(), Thesaurus()]
        if folder or wordnet_folder():
            matchers.append(WordNetSame(folder))
        if MiniLM.installed():
            matchers.append(EmbeddingSame(MiniLM(), THRESHOLD))
        super().__init__(matchers)
