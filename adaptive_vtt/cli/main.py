"""``avtt``: the commands, each in a file of its name. Errors are one line, exit code 2."""

import sys
from itertools import pairwise
from typing import Annotated, NoReturn

import typer

from .. import __version__
from ..errors import AvttError
from . import relations
from .audit import audit
from .build_vqa import build_vqa
from .compare import compare
from .export import export
from .fleet import fleet
from .gate import gate
from .init import init
from .label import label
from .list import list_parts
from .options import SpecCommand
from .pictures import pictures
from .plan import plan
from .rejudge import rejudge
from .report import report
from .resume import resume
from .runs import runs
from .serve_demo import serve_demo
from .slices import slices
from .verify import verify
from .versus import versus
from .view import view

app = typer.Typer(
    name="avtt",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"adaptive-vtt {__version__}")
        raise typer.Exit


@app.callback()
def avtt(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    """Audit an expensive vision model with few calls.

    Begin with 'avtt audit --demo', or with 'avtt init DIR' for images of your
    own. 'avtt COMMAND --help' says more.
    """


for command in (
    audit,
    plan,
    resume,
    rejudge,
    versus,
    fleet,
    report,
    verify,
    runs,
    view,
    pictures,
    label,
    export,
    gate,
    slices,
    compare,
    init,
    build_vqa,
    serve_demo,
):
    app.command(cls=SpecCommand)(command)
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
        # an option or argument typer could not use
        _fail(f"{error.format_message()}{_given(error, arguments or sys.argv[1:])}", 2)


def _given(error: Exception, arguments: list[str]) -> str:
    """What was given for the option that an error is about, which typer does not say."""
    names = getattr(getattr(error, "param", None), "opts", ())
    values = [value for name, value in pairwise(arguments) if name in names]
    return f", got {values[0]!r}" if values else ""


def _fail(message: str, code: int) -> NoReturn:
    sentence = " ".join(message.split())
    if sentence:
        typer.echo(f"avtt: {sentence}", err=True)
    sys.exit(code)
