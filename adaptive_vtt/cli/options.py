"""Options and arguments that several commands take."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError


def opt(about: str, metavar: str | None = None, flags: str = "", **more: Any) -> Any:
    """An option as its help describes it; ``flags``: where the parameter's name will not do."""
    return typer.Option(*flags.split(), help=about, metavar=metavar, **more)


def arg(about: str, metavar: str) -> Any:
    """An argument."""
    return typer.Argument(help=about, metavar=metavar)


Json = Annotated[bool, opt("Print the result as JSON, and nothing else.", flags="--json")]
Out = Annotated[
    Path, opt("Folder to write journal.db, result.json and report.html into.", flags="--out")
]
RunDir = Annotated[Path, arg("Folder that an audit wrote (its --out).", "DIR")]

Head = Annotated[
    str | None, opt("The journal's head as you kept it elsewhere: 32 hexadecimal digits.", "HASH")
]

Open = Annotated[bool, opt("Open the report in the browser once it is written.", flags="--open")]

Port = Annotated[int, opt("Where the page listens; 0 takes a free one.")]
OpenPage = Annotated[bool, opt("Open the page in the browser.", flags="--open/--no-open")]
Plotly = Annotated[
    str,
    opt(
        "plotly.js of the report's figures: packed inside it, beside it in its folder, or "
        "loaded from Plotly's address.",
        "inline|folder|cdn",
    ),
]

RunCode = Annotated[bool, opt("Run datasets, relations and oracles of the spec that are code.")]
"""Of commands that build a run folder's space again, which otherwise run nothing of it."""


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
