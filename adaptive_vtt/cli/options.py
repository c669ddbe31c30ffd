"""Options and arguments that several commands take."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError

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

Port = Annotated[int, typer.Option(help="Where the page listens; 0 takes a free one.")]
OpenPage = Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")]
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
