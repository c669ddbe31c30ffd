"""A WordNet of a few nouns, and a file of a few word vectors."""

from pathlib import Path

import pytest

SYNSETS: dict[str, tuple[str, list[str], list[str]]] = {
    "entity": ("03", ["entity"], []),
    "object": ("03", ["object"], ["entity"]),
    "whole": ("03", ["whole"], ["object"]),
    "animal": ("05", ["animal"], ["whole"]),
    "cat": ("05", ["cat", "true_cat"], ["animal"]),
    "tabby": ("05", ["tabby"], ["cat"]),
    "dog": ("05", ["dog"], ["animal"]),
    "felix": ("05", ["felix"], ["@i cat"]),
    "person": ("18", ["person"], ["whole"]),
    "guy": ("18", ["cat", "guy"], ["person"]),
    "lad": ("18", ["lad"], ["person"]),
    "furniture": ("06", ["furniture"], ["whole"]),
    "table": ("06", ["table"], ["furniture"]),
    "frank": ("13", ["hot_dog"], ["whole"]),
    "goose": ("05", ["goose"], ["animal"]),
    "device": ("06", ["mouse", "pointer"], ["whole"]),
    "rodent": ("05", ["mouse"], ["animal"]),
}
SENSES = {"cat": ["cat", "guy"], "mouse": ["rodent", "device"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a database of the nouns above, in WordNet's formats."""
    licence = "  1 This is no licence at all.  \n"

    def line(name: str, at: dict[str, int]) -> str:
        number, words, hypernyms = SYNSETS[name]
        synonyms = " ".join(f"{word} 0" for word in words)
        above = [each.split() if " " in each else ["@", each] for each in hypernyms]
        pointers = [f"{symbol} {at.get(to, 0):08d} n 0000" for symbol, to in above]
        pointers.append(f"#m {at.get('whole', 0):08d} n 0000")  # a member of: no kind of
        fields = f"{number} n {len(words):02x} {synonyms} {len(pointers):03d} {' '.join(pointers)}"
        return f"{at.get(name, 0):08d} {fields} | what it is  \n"

    at, place = {}, len(licence)
    for name in SYNSETS:
        at[name] = place
        place += len(line(name, {}))
    index: dict[str, list[str]] = {}
    for name, (_, words, _) in SYNSETS.items():
        for word in words:
            index.setdefault(word, []).append(name)
    entries = [
        f"{word} n {len(names)} 1 @ {len(names)} 0 "
        + " ".join(f"{at[name]:08d}" for name in SENSES.get(word, names))
        for word, names in sorted(index.items())
    ]
    (tmp_path / "data.noun").write_text(licence + "".join(line(name, at) for name in SYNSETS))
    (tmp_path / "index.noun").write_text(licence + "".join(f"{each}  \n" for each in entries))
    (tmp_path / "noun.exc").write_text("geese goose\n")
    return tmp_path


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    path = tmp_path / "glove.txt"
    path.write_text("dog 2 0\npuppy 1.6 1.2\ncat 0 1\nred 0 3\nodd name 1 1\nnil 0 0\n")
    return path
