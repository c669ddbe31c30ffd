"""Options and arguments that several commands take."""

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ..errors import InputError
from ..utils.toml import merged, toml_of

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
Out = Annotated[
    Path,
    typer.Option("--out", help="Folder to write journal.db, result.json and report.html into."),
]
RunDir = Annotated[
    Path, typer.Argument(help="Folder that an audit wrote (its --out).", metavar="DIR")
]

Head = Annotated[
    str | None,
    typer.Option(
        help="The journal's head as you kept it elsewhere: 32 hexadecimal digits.",
        metavar="HASH",
    ),
]

Open = Annotated[
    bool, typer.Option("--open", help="Open the report in the browser once it is written.")
]

Plotly = Annotated[
    str,
    typer.Option(
        help="plotly.js of the report's figures: packed inside it, beside it in its folder, or "
        "loaded from Plotly's address.",
        metavar="inline|folder|cdn",
    ),
]

RunCode = Annotated[
    bool,
    typer.Option(
        "--run-code", help="Run datasets, relations and oracles of the spec that are code."
    ),
]
"""Of commands that build a run folder's space again, which otherwise run nothing of it."""

FIELD = "SPEC.toml: "
"""How the help of an option begins that sets a field; ``SpecCommand`` writes the rest."""

Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Any field of SPEC.toml, its value as there, such as certify.discover=3 or "
        "certify.self_taught=false; again for more.",
        metavar="SECTION.FIELD=VALUE",
    ),
]


class SpecCommand(TyperCommand):
    """A command with options that set fields of SPEC.toml, described as the fields are."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.describe()
        super().format_help(ctx, formatter)

    def describe(self) -> None:
        """Writes the help of options that name a field."""
        from ..config import description

        for option in self.params:
            told = getattr(option, "help", None) or ""
            if told.startswith(FIELD):
                option.help = description(told.removeprefix(FIELD))  # type: ignore[attr-defined]


def field(place: str, metavar: str, panel: str | None = None) -> Any:
    """The option that sets the field ``place``, SECTION.FIELD."""
    return typer.Option(help=FIELD + place, metavar=metavar, rich_help_panel=panel)


def settings(texts: Iterable[str] | None) -> dict[str, Any]:
    """What ``--set`` gave, as the tables of a SPEC.toml; a word may stand without quotes.

    Raises InputError for what is no SECTION.FIELD=VALUE.
    """
    found: dict[str, Any] = {}
    for text in texts or ():
        found = merged(found, _setting(text))
    return found


def _setting(text: str) -> dict[str, Any]:
    name, _, value = text.partition("=")
    for line in (text, f"{name} = {json.dumps(value.strip())}" if value.strip() else ""):
        try:
            if (found := toml_of(line)) and "\n" not in text:
                return found
        except tomllib.TOMLDecodeError:
            continue
    raise InputError(
        f"--set: expected SECTION.FIELD=VALUE, such as certify.discover=3, got {text!r}"
    )


def names(text: str | None) -> list[str] | None:
    """The names in a list separated by commas; None where the option was not given."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def pairs(texts: list[str] | None, option: str, form: str) -> dict[str, str]:
    """What was given as NAME=VALUE, once per name; raises InputError for anything else."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign and value):
            raise InputError(f"{option}: expected {form}, got {text!r}")
        if name in found:
            raise InputError(f"{option}: {name!r} is given twice")
        found[name] = value
    return found
