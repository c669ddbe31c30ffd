"""What all sections of a SPEC.toml have in common, and those that come in kinds."""

from collections.abc import Callable, Iterable
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..utils.loading import is_target
from ..utils.registry import Registry

PLUG_IN = "plug-in"
"""The tag of kinds that are other people's code."""


class Section(BaseModel):
    """Fields are checked strictly; one that is not known is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _set(cls, table: Any) -> Any:
        """Journals hold null where nothing was set, which is as good as not being there."""
        if not isinstance(table, dict):
            return table
        return {name: value for name, value in table.items() if value is not None}

    def given(self, *apart: str) -> dict[str, Any]:
        """The fields that are set, without ``kind`` and those named."""
        return self.model_dump(exclude={"kind", *apart}, exclude_none=True)


class PlugIn(Section):
    """A part that is not built in: of an installed package, or of a file."""

    kind: str = Field(
        description="the name that a package declares (see 'avtt list'), 'file.py:name' or "
        "'package.module:name'"
    )
    options: dict[str, Any] = Field(
        {}, description="arguments of the class or function of that name"
    )


def kind_of(registry: Registry, default: str) -> Callable[[Any], str]:
    """What tells pydantic which class a table of a section is for, by its ``kind``."""

    def tag(value: Any) -> str:
        name = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
        if name is None or name in registry.built_in:
            return name or default
        known = not isinstance(name, str) or is_target(name) or registry.package_of(name)
        return PLUG_IN if known else name

    return tag


def kinds_of(annotation: Any) -> list[type[Section]]:
    """The classes of a section's annotation, the default kind first."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [found for part in _parts(annotation) for found in kinds_of(part)]


def kind_name(section: type[Section]) -> str | None:
    """The kind that a class is for; None for plug-ins and for sections without kinds."""
    field = section.model_fields.get("kind")
    words = () if field is None else get_args(field.annotation)
    return words[0] if words else None


def _parts(annotation: Any) -> Iterable[Any]:
    """The members of a union; the type that is annotated."""
    parts = get_args(annotation)
    return parts[:1] if hasattr(annotation, "__metadata__") else parts
