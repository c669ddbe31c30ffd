"""``avtt``: the commands, each in a file of its name. Errors are one line with exit code 2.

A command's file, and with it what it needs, is imported when it is called.
"""

import io
import os
import sys
from importlib import import_module
from importlib.resources import files
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ..errors import AvttError, one_line
from ..utils.importing import own_version
from .options import command_of
from .signals import NOT_BEGUN, interrupted_as

GROUPS = {
    "Run": "init plan audit resume census versus compare slices rejudge",
    "Look and decide": "view runs report export gate verify",
    "People and parts": "label list preview build-vqa serve-demo",
}
"""Purpose -> names of its commands."""


def _summary(name: str) -> str:
    """Return the first line of a command's help, read from its file, which is not imported."""
    word = name.replace("-", "_")
    source = files(__package__).joinpath(f"{word}.py").read_text("utf-8")
    docstring = source.partition(f"\ndef {word}")[2].partition('"""')[2]
    return docstring.partition("\n")[0]


SUMMARIES = {name: _summary(name) for group in GROUPS.values() for name in group.split()}
INTERRUPTED = 130
"""Exit code of a Ctrl-C: 128 and the signal's number."""
SETTING = ("audit", "census", "plan", "versus", "compare")
"""Commands whose --set takes any field of SPEC.toml."""
NUMBERS = {" valid integer,": "a whole number", " valid number,": "a number"}
"""Part of typer's message -> what was expected."""

app = typer.Typer(
    name="avtt", no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich"
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"adaptive-vtt {own_version()}")
        raise typer.Exit


EAGER: Any = {"callback": _version, "is_eager": True, "metavar": ""}


@app.callback()
def avtt(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", **EAGER)] = False,
) -> None:
    """Audit an expensive vision model with few calls.

    Begin with 'avtt audit --demo', or with 'avtt init DIR' for your own images.
    'avtt --install-completion' lets your shell complete commands.
    """


def command(name: str) -> Any:
    """Return the command of that name, imported."""
    word = name.replace("-", "_")
    module = import_module(f".{word}", __package__)
    return command_of(name, getattr(module, "list_parts" if name == "list" else word))


class _Later(TyperCommand):
    """Placeholder of a command, whose file is imported when it is called."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **more: Any) -> Any:
        with interrupted_as(lambda: NOT_BEGUN):
            called = command(str(self.name))
        return called.make_context(info_name, args, *rest, **more)


for _group, _names in GROUPS.items():
    for _name in _names.split():
        more: Any = {"help": SUMMARIES[_name], "rich_help_panel": _group}
        app.command(_name, cls=_Later, **more)(lambda: None)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; mistakes of the user end with one line on stderr and exit code 2."""
    if os.environ.get("COLUMNS", "").strip() == "0":  # some shells set it where it is not known
        del os.environ["COLUMNS"]
    for stream in (sys.stdout, sys.stderr):  # names that a terminal cannot show are escaped
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    group: Any = typer.main.get_command(app)
    group.get_help_option(typer.Context(group)).metavar = ""  # else "<bool>"
    for option in group.params:
        if "completion" in str(option.name):
            option.hidden = True  # they fill the screen
    try:
        code = group(arguments, prog_name="avtt", standalone_mode=False)
        if code == INTERRUPTED:  # typer returns this after a Ctrl-C, and prints nothing
            raise KeyboardInterrupt
        sys.exit(code)
    except (Exception, KeyboardInterrupt) as error:
        sentence, code = _explained(error, arguments or sys.argv[1:])
        if code is None:
            raise
        if sentence := " ".join(sentence.split()):
            typer.echo(f"avtt: {sentence}", err=True)
        sys.exit(code)


def _explained(error: BaseException, arguments: list[str]) -> tuple[str, int | None]:
    """Return the sentence of an error, and the exit code; None for a fault of this program."""
    if isinstance(error, AvttError):
        return str(error), error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", INTERRUPTED
    if isinstance(error, typer.Abort):
        return "aborted", 1
    if hasattr(error, "format_message"):  # an option or argument typer could not use
        names: list[str] = getattr(getattr(error, "param", None), "opts", [])
        values = [value for name, value in pairwise(arguments) if name in names]
        got = f", got {values[0]!r}" if values else ""  # typer's message lacks the value
        message = error.format_message().partition("Value error, ")[2]  # of ``options.share``
        for typers, expected in NUMBERS.items():
            if typers in error.format_message() and values:
                message = f"{names[0]}: expected {expected}{got}"
        return message or _set_instead(error) or f"{error.format_message()}{got}", 2
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        name = ascii(error.object)[:200]
        return f"{name}: expected file names in UTF-8, got other bytes; rename it", 2
    from ..utils.other_code import place_of

    place = place_of(error)
    sentence = f"your code raised {type(error).__name__}: {one_line(error)}{place}"
    return sentence, 2 if place else None


def _set_instead(error: BaseException) -> str:
    """Return the --set for an unknown option that is a field of SPEC.toml; "" for other errors."""
    name, context = getattr(error, "option_name", ""), getattr(error, "ctx", None)
    if not name or context is None or context.info_name not in SETTING:
        return ""
    from .spec_changes import places_of

    places = [f"--set {place}=VALUE" for place in places_of(name.strip("-").replace("-", "_"))]
    return f"no option {name}: a field of SPEC.toml, set by {' or '.join(places)}" if places else ""
