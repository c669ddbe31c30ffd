"""The [oracle] section of a SPEC.toml."""

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, SerializeAsAny

from ..datasets import Dataset
from ..oracles import REGISTRY, OracleDefaults, adapted
from ..oracles.captions import TAGGERS
from ..oracles.judge_models import Regime
from ..utils.loading import is_target
from .judge import JudgeSpec
from .section import Kinds, PlugIn


class OracleSection(Kinds):
    """What makes an answer wrong."""

    registry = REGISTRY
    default = "correctness"

    def build(self, base: Path, dataset: Dataset) -> OracleDefaults:
        """The oracle, for questions about ``dataset``; relative paths start at ``base``."""
        found: OracleDefaults = self.made(base)
        return found


class WordsSection(OracleSection):
    """An oracle of replies in words, which a model may be asked to read."""

    judge: JudgeSpec | None = Field(
        None, description="[oracle.judge]: a model that reads what the rule cannot"
    )
    regime: ClassVar[Regime] = "option-matching"

    def build(self, base: Path, dataset: Dataset) -> OracleDefaults:
        by = None if self.judge is None else self.judge.made(base, dataset, self.regime)
        found: OracleDefaults = self.made(base, judge=by)
        return found


class ContainsTruthSection(WordsSection):
    regime: ClassVar[Regime] = "yes-no"


class CaptionOracleSection(OracleSection):
    """An oracle of captions: what reads them, and which names mean the same."""

    words: Literal["alike", "literal"] | None = Field(
        None,
        description="which names mean the same object: alike ones (default), by number, last "
        "words, and what else is installed; or equal ones alone",
    )
    wordnet: str | None = Field(
        None, description="folder of WordNet's database files (default: $WNSEARCHDIR)"
    )
    vectors: str | None = Field(
        None, description="file of word vectors (GloVe, FastText) to compare names by"
    )
    threshold: float | None = Field(None, description="least similarity of vectors", gt=0, le=1)
    tagger: str | None = Field(
        None,
        description="what finds nouns: a spaCy model, or 'file.py:name' or "
        "'package.module:name' of a Reader (default: the built-in tagger)",
    )
    places: bool | None = Field(
        None, description="take nouns that say where (street) for objects, too (false)"
    )

    def read_by(self, base: Path) -> tuple[Any, Any]:
        """What reads the objects of a caption, and what says which names mean the same."""
        from ..oracles.captions import language

        same = language.same(
            self.words or "alike",
            wordnet=None if self.wordnet is None else base / self.wordnet,
            vectors=None if self.vectors is None else base / self.vectors,
            threshold=self.threshold,
        )
        if self.tagger is not None and is_tagger(self.tagger):
            return TAGGERS.checked(TAGGERS.make(self.tagger, {}, base), self.tagger), same
        return language.reader(self.tagger, places=bool(self.places)), same

    def build(self, base: Path, dataset: Dataset) -> OracleDefaults:
        reader, same = self.read_by(base)
        names = {"classes": dataset.concepts} if self.kind == "caption-classes" else {}
        found: OracleDefaults = self.made(base, reader=reader, same=same, **names)
        return found


class PlugInOracle(PlugIn, OracleSection):
    """An oracle of a package or file of your own."""

    def build(self, base: Path, dataset: Dataset) -> OracleDefaults:
        """The oracle; its code is imported."""
        return adapted(REGISTRY.checked(REGISTRY.make(self.kind, self.options, base), self.kind))


def is_tagger(name: str) -> bool:
    """Whether a tagger is other people's code, and no model of spaCy's."""
    return is_target(name) or TAGGERS.package_of(name) is not None


OracleSection.special = {
    "multiple-choice": WordsSection,
    "contains-truth": ContainsTruthSection,
    "captions": CaptionOracleSection,
    "caption-classes": CaptionOracleSection,
}
OracleSection.plug_in = PlugInOracle
OracleSpec = SerializeAsAny[OracleSection]
