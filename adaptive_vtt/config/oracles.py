"""The [oracle] section of a SPEC.toml, and in it [oracle.judge], a model that reads replies."""

from functools import partial
from pathlib import Path
from typing import Any, cast

from pydantic import Field, SerializeAsAny

from ..datasets import Dataset
from ..errors import unexpected
from ..models import REGISTRY as MODELS
from ..models import ModelUnderTest, adapted_model
from ..models.base import ModelDefaults
from ..models.local.python import TextModel
from ..oracles import REGISTRY, OracleDefaults, adapted
from ..oracles.captions import language
from ..oracles.judge_models import JudgeModel, Regime
from ..utils.files import Table
from ..utils.options import arguments, parameters_of
from ..utils.other_code import load_object
from .datasets import read_sections
from .models import ModelSpec, OwnSection, PythonSection, Worked
from .secrets import refuse_secrets
from .section import Kinds, PlugIn, Section, option
from .sentences import validated


class JudgeSpec(Section):
    """A model that reads the replies that the oracle's rule is not sure of."""

    model: ModelSpec
    prompt: str | None = option(JudgeModel, "prompt")
    regime: Regime | None = option(JudgeModel, "regime", set_here=False)
    check: float = option(JudgeModel, "check")
    price: float | None = Field(
        None, description="of a call, where the model is a python function (free)", ge=0
    )

    def made(self, base: Path, dataset: Dataset, regime: Regime) -> JudgeModel:
        """Return the judge, whose model is built when it is first asked. Raise InputError for an
        incomplete prompt, a kind of model without words, and workers."""
        self.check_words("oracle.judge.model")
        given = self.model.model_dump()  # names it without building it
        names = (given.get(field) for field in ("name", "model", "target", "url", "kind"))
        return JudgeModel(
            partial(_model, self, base, dataset),
            regime=self.regime or regime,
            prompt=self.prompt,
            check=self.check,
            name=str(next(filter(None, names))),
            code=isinstance(self.model, OwnSection),
        )

    def check_words(self, where: str) -> None:
        """Raise InputError for a kind of model without words, and workers."""
        made = None if isinstance(self.model, OwnSection) else MODELS.get(self.model.kind)
        if made is not None and not getattr(made, "may_judge", False):
            kinds = "openai, anthropic, http, python, or code of your own"
            expected = f"a kind that answers words with words ({kinds})"
            raise unexpected(f"{where}.kind", expected, repr(self.model.kind))
        if isinstance(self.model, Worked):
            self.model.refuse_workers(where)


def read_model_of_words(path: Path, dataset: Dataset) -> ModelDefaults:
    """Return the [model] of a TOML file, whose other sections are ignored. It is sent texts without
    a template. Raise InputError naming file and field."""
    spec = _judge(read_sections(path, "model"), str(path))
    spec.check_words(f"{path}: model")
    return adapted_model(_model(spec, path.parent, dataset))


def check_judge(table: Table, where: str) -> None:
    """Raise InputError, naming the field, for a wrong judge in the [oracle] ``table``."""
    if isinstance(judge := table.get("judge"), dict):
        _judge(judge, f"{where}: oracle.judge")


def _judge(table: Table, where: str) -> JudgeSpec:
    if isinstance(table.get("model"), dict):
        refuse_secrets(table["model"], where)
    return validated(JudgeSpec, table, where)


def _model(spec: JudgeSpec, base: Path, dataset: Dataset) -> ModelUnderTest:
    section = spec.model
    if isinstance(section, PythonSection):
        function = load_object(section.target, base, "judge")
        return TextModel(function, section.name, price=spec.price or 0.0)
    if "template" in type(section).model_fields:
        section = section.model_copy(update={"template": "verbatim"})
    return section.build(base, dataset, captions=False)


class OracleSection(Kinds):
    """The rule that makes an answer wrong."""

    registry = REGISTRY
    default = "correctness"

    @classmethod
    def base_of(cls, made: Any) -> type[Kinds]:
        """Return the class of oracles that take a judge, or read captions; else this one."""
        taken = parameters_of(made)
        if "judge" in taken:
            return WordsSection
        return CaptionOracleSection if "reader" in taken else cls

    def build(self, base: Path, dataset: Dataset) -> OracleDefaults:
        """Return the oracle, for questions about ``dataset``; paths start at ``base``."""
        return cast("OracleDefaults", self.made(base))


class WordsSection(OracleSection):
    """An oracle of replies in words, which a model may be asked to read."""

    judge: JudgeSpec | None = Field(
        None, description="[oracle.judge]: a model that reads what the rule cannot"
    )

    def build(self, base: Path, dataset: Dataset) -> OracleDefaults:
        regime = REGISTRY.get(self.kind).judged_by
        by = None if self.judge is None else self.judge.made(base, dataset, regime)
        return cast("OracleDefaults", self.made(base, judge=by))


class CaptionOracleSection(OracleSection):
    """An oracle of captions, with options of what reads them and of names that mean the same."""

    words: str | None = option(language.same, "words", set_here=False)
    tagger: str | None = option(language.reader, "tagger", set_here=False)
    places: bool | None = option(language.reader, "places", set_here=False)

    def build(self, base: Path, dataset: Dataset) -> OracleDefaults:
        values = self.values()
        reader = language.reader(**arguments(language.reader, values, base))
        same = language.same(**arguments(language.same, values, base))
        return cast("OracleDefaults", self.made(base, reader=reader, same=same))


class PlugInOracle(PlugIn, OracleSection):
    """An oracle of a package or file of your own."""

    def build(self, base: Path, dataset: Dataset) -> OracleDefaults:
        """Return the oracle; its code is imported."""
        return adapted(self.made(base))


OracleSection.plug_in = PlugInOracle
OracleSpec = SerializeAsAny[OracleSection]
