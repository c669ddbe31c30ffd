"""``avtt``: the commands, each in a file of its name. Errors are one line, exit code 2."""

import sys
from typing import NoReturn

import typer

from ..errors import AvttError
from . import relations
from .audit import audit
from .compare import compare
from .export import export
from .gate import gate
from .init import init
from .label import label
from .list import list_parts
from .pictures import pictures
from .report import report
from .resume import resume
from .runs import runs
from .serve_demo import serve_demo
from .verify import verify
from .view import view

app = typer.Typer(
    name="avtt",
    help="Audit an expensive vision model with few calls.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for command in (
    audit,
    resume,
    report,
    verify,
    runs,
    view,
    pictures,
    label,
    export,
    gate,
    compare,
    init,
    serve_demo,
):
    app.command()(command)
app.command("list")(list_parts)
app.add_typer(relations.app, name="relations")


def main(arguments: list[str] | None = None) -> None:
    """Runs a command; mistakes of the user end with one line on stderr and exit code 2."""
    try:
        sys.exit(app(arguments, prog_name="avtt", standalone_mode=False))
    except AvttError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except typer.Abort:
        _fail("aborted", 1)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        _fail(error.format_message(), 2)  # an option or argument typer could not use


def _fail(message: str, code: int) -> NoReturn:
    sentence = " ".join(message.split())
    if sentence:
        typer.echo(f"avtt: {sentence}", err=True)
    sys.exit(code)
