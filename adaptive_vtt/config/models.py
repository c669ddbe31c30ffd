"""The [model] section of a SPEC.toml: a class per kind that needs one, and what it builds."""

from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SerializeAsAny

from ..datasets import Dataset
from ..errors import unexpected
from ..models import REGISTRY, WORKED, ModelUnderTest, adapted_model
from ..models.local.python import Output, as_model, load
from ..models.versions import files_in
from ..models.workers import Workers
from ..utils.options import arguments, at_base, options_of, parameters_of
from .secrets import filled
from .section import Kinds, PlugIn, Section, option


class ModelSection(Kinds):
    """The model under test."""

    registry = REGISTRY
    default = "python"

    name: str | None = Field(None, description="what the report calls the model")
    version: str | None = Field(
        None,
        description="of the model (default: a hash of its file and of those that options name): a "
        "changed model is another one; open-inference: the version to ask for",
    )
    seed: int = Field(0, description="simulated, calls over a network: same seed, same model")

    @classmethod
    def base_of(cls, made: Any) -> type[Kinds]:
        if made == REGISTRY.get("python"):
            return PythonSection
        return LocalSection if any(made == REGISTRY.get(kind) for kind in WORKED) else cls

    @property
    def costs_money(self) -> bool:
        """True if every call of such a model may cost money, whatever prices are given."""
        return "prices" in self._taken

    @property
    def free(self) -> bool:
        """True if all calls are free and fast: answers are recorded or simulated."""
        return self.kind in ("recorded", "simulated")

    @property
    def _taken(self) -> set[str]:
        """Parameters of the constructor; none for other people's code, which is not imported."""
        return set() if REGISTRY.is_code(self.kind) else parameters_of(REGISTRY.get(self.kind))

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        """Return the model; relative paths start at ``base``. ``captions``: whether its answers are
        captions."""
        taken, made = self._taken, REGISTRY.get(self.kind)
        with filled(self.values() if "keys" in taken else {}) as (values, keys):
            options = arguments(made, {**self.values(), **values}, base)
            own: dict[str, Any] = {"seed": self.seed, "version": self.version, "keys": keys or None}
            own |= {"directory": base, "dataset": dataset, "captions": captions, "name": self.name}
            context = {n: value for n, value in own.items() if n in taken and value is not None}
            model: ModelUnderTest = made(**context, **options)
        return model

    def files(self, base: Path) -> dict[str, Path]:
        """Files named by options of the model's own code; options for a server name none."""
        return {} if "keys" in self._taken else files_in(getattr(self, "options", None), base)

    def file(self) -> str | None:
        """Return the file that holds the model, and so its version; None if none does."""
        options = options_of(REGISTRY.get(self.kind))
        paths = [getattr(self, each.name) for each in options if each.option.reads is at_base]
        return next(filter(None, reversed(paths)), None)  # weights stand behind their folder


WORKERS = [option.name for option in options_of(Workers)]
NOT_HERE = (
    "; workers hold models that compute here (python, onnx, torch, your own)"
    "; an endpoint answers in_flight calls at a time by itself"
)
"""Hint for a kind without workers."""


class Worked(Section):
    """Fields of kinds whose models compute in our processes."""

    workers: int | str | None = option(Workers, "workers", set_here=False)
    actors: int | None = option(Workers, "actors", set_here=False)
    in_flight: int | None = option(Workers, "in_flight", set_here=False)

    def refuse_workers(self, where: str) -> None:
        """Raise InputError if a field of workers is set."""
        if given := [name for name in WORKERS if getattr(self, name) is not None]:
            expected, got = "a model that the audit holds itself", repr(getattr(self, given[0]))
            raise unexpected(f"{where}.{given[0]}", expected, got, "leave it out")

    def unworked(self) -> "Worked":
        """Return the section without workers: each worker builds its model from that."""
        return self.model_copy(update=dict.fromkeys(WORKERS))

    def worked(self, base: Path) -> ModelUnderTest | None:
        """Return a model that the section's workers hold; None if it has none."""
        options = self.model_dump(include={*WORKERS}, exclude_none=True)
        if not options:
            return None
        if self.workers is None:
            expected, remedy = "it with model.workers", "set workers = 2, or leave it out"
            raise unexpected(f"model.{min(options)}", expected, "it alone", remedy)
        section: Any = self.unworked()
        return Workers(partial(section.build, base.resolve(), None, captions=False), **options)


class OwnSection(ModelSection, Worked):
    """A model that is code of somebody's own."""

    output: Output | None = option(load, "output")
    per_call: Literal["one", "all"] | None = Field(
        None, description="what avtt plan, which imports no model, takes a call to answer (all)"
    )

    @property
    def code(self) -> str:
        """Name of the code: 'file.py:name', 'package.module:name', or a package's name for it."""
        return str(self.kind)

    def file(self) -> str | None:
        return self.code.rpartition(":")[0]

    def agreed(self, model: ModelUnderTest) -> ModelUnderTest:
        """Return the model under the section's name. Raise InputError if it does not answer as
        the section says."""
        model = adapted_model(model)
        if self.name is not None:
            model.name = self.name
        if self.per_call not in (None, model.answers):
            expected = f"{model.answers!r}, as the model says"
            raise unexpected("model.per_call", expected, repr(self.per_call))
        return model


class PythonSection(OwnSection):
    """A callable or torch module."""

    target: str = option(load, "target")

    @property
    def code(self) -> str:
        return self.target

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        return self.agreed(REGISTRY.get(self.kind)(self.target, base=base, output=self.output))


class PlugInSection(OwnSection, PlugIn):
    """A model of a package or file of your own."""

    kind: str = Field(description="its name; see 'avtt list models'")

    def build(self, base: Path, dataset: Dataset, *, captions: bool) -> ModelUnderTest:
        with filled({"options": self.options}) as (given, _):
            options, model = given["options"], REGISTRY.get(self.kind, base)
            if isinstance(model, type) or options:  # a function without options is the model
                model = REGISTRY.called(model, self.kind, options, base)
            return self.agreed(as_model(model, self.kind, self.output))


class LocalSection(ModelSection, Worked):
    """A model that computes in our processes."""


ModelSection.plug_in = PlugInSection
ModelSpec = SerializeAsAny[ModelSection]
