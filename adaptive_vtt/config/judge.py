"""The table [oracle.judge] of a SPEC.toml: a model that reads replies, and how it is asked."""

from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from ..datasets import Dataset
from ..errors import InputError
from ..models import ModelUnderTest
from ..models.local.python import TextModel
from ..oracles.judge_models import JudgeModel, Regime
from ..utils.loading import load_object
from .models import ModelSpec, PlugInSection, PythonSection
from .secrets import refuse_secrets
from .section import Section
from .sentences import sentence
from .workers import Worked

_NO_WORDS = {
    "anthropic-batch",
    "captioner",
    "onnx",
    "open-inference",
    "openai-batch",
    "recorded",
    "simulated",
    "subprocess",
    "torch",
    "transformers",
}
"""Kinds of models that answer about images alone, or hours later."""


class JudgeSpec(Section):
    """A model that says what replies mean of which the oracle's rule is not sure."""

    model: ModelSpec
    prompt: str | None = Field(
        None,
        description="what it is sent, with {question}, {options} or {truth}, {reply}, and {mark} "
        "on a line before and after the reply (default: see the how-to)",
    )
    regime: Regime | None = Field(
        None,
        description="it names the option that a reply chooses (default of multiple-choice), or "
        "says whether the reply agrees with the truth (default of contains-truth)",
    )
    check: float = Field(
        0.0,
        description="share of the replies of which the rule is sure that it is asked about, too, "
        "to report how often they agree; the rule decides those",
        ge=0,
        le=1,
    )
    price: float | None = Field(
        None, description="of a call, where the model is a python function (free)", ge=0
    )

    def made(self, base: Path, dataset: Dataset, regime: Regime) -> JudgeModel:
        """The judge, whose model is built when it is first asked. Raises InputError for a prompt
        that lacks something, a kind of model that has no words, and workers."""
        if self.model.kind in _NO_WORDS:
            raise InputError(
                "oracle.judge.model.kind: expected a kind that answers words with words (openai, "
                f"anthropic, http, python, or code of your own), got {self.model.kind!r}"
            )
        if isinstance(self.model, Worked):
            self.model.refuse_workers("oracle.judge.model")
        return JudgeModel(
            partial(_model, self, base, dataset),
            regime=self.regime or regime,
            prompt=self.prompt,
            check=self.check,
            name=self._name,
            code=isinstance(self.model, PythonSection | PlugInSection),
        )

    @property
    def _name(self) -> str:
        """What tells it from other judges, without building it."""
        given = self.model.model_dump()
        known = (given.get(field) for field in ("name", "model", "target", "url", "kind"))
        return str(next(filter(None, known)))


def check_judge(table: dict[str, Any], where: str) -> None:
    """Raises InputError, naming the field, for a judge in the [oracle] ``table`` that is none."""
    judge = table.get("judge")
    if not isinstance(judge, dict):
        return
    where = f"{where}: oracle.judge"
    if isinstance(judge.get("model"), dict):
        refuse_secrets(judge["model"], where)
    try:
        JudgeSpec.model_validate(judge)
    except ValidationError as error:
        raise sentence(error, where, JudgeSpec, judge) from None


def _model(spec: JudgeSpec, base: Path, dataset: Dataset) -> ModelUnderTest:
    section = spec.model
    if isinstance(section, PythonSection):
        function = load_object(section.target, base, "judge")
        return TextModel(function, section.name, price=spec.price or 0.0)
    if "template" in type(section).model_fields:
        section = section.model_copy(update={"template": "verbatim"})
    return section.build(base, dataset, captions=False)
