"""A command is a function: its signature holds the options, its docstring their help.

Parameters before the ``*`` are arguments, those after it options of their name (``json_`` is
``--json``). ``Args:`` describes them, with what stands for a value in parentheses; any other
heading is a heading of ``--help``, too. Help that begins with "With --name:" allows its option
only together with that one.
"""

import re
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, cleandoc, signature
from textwrap import dedent
from typing import Annotated, Any, get_type_hints

import typer

from ..errors import InputError, unexpected

SHARED = """
directory (DIR): Folder that an audit wrote (its --out).
head (HASH): The journal's fingerprint that you noted: 32 hexadecimal digits.
json_: Print the result as JSON, and nothing else.
open_: Open the report in the browser.
out: Folder to write journal.db, result.json and report.html into.
plotly (WHERE): Where the report has plotly.js: inline, folder (next to it) or cdn (Plotly's
    address).
run_code: Run code of the spec's dataset, relations and oracle.
set_ (FIELD=VALUE): Any field of SPEC.toml, such as certify.discover=3 or certify.self_taught=false;
    repeatable.
"""
"""Help of options that several commands have, unless their docstrings describe them."""
HEADING = re.compile(r"^(Args|[A-Z][\w ]+):\n(?= )", re.M)
ENTRY = re.compile(r"^(\w+)(?: \((.+?)\))?: *(.+(?:\n +.+)*)", re.M)
FIELD = re.compile(r"\{([\w.]+)\}")
"""In a help text, stands for the description of that field of SPEC.toml."""
WITH = re.compile(r"With (--[\w-]+(?: or --[\w-]+)*):")
"""At the start of a help text, names options: one of them has to be given with this one."""


def command_of(name: str, function: Callable[..., None]) -> Any:
    """Return the command that calls ``function``, with the options of its signature."""
    about, *sections = HEADING.split(cleandoc(function.__doc__ or ""))
    helps: dict[str, Any] = {e[1]: (None, *e.groups()[1:]) for e in ENTRY.finditer(SHARED)}
    for heading, body in zip(sections[::2], sections[1::2], strict=True):
        panel = None if heading == "Args" else heading
        helps |= {e[1]: (panel, *e.groups()[1:]) for e in ENTRY.finditer(dedent(body))}
    kinds, parameters = get_type_hints(function), signature(function).parameters
    flags = {name: f"--{name.strip('_').replace('_', '-')}" for name in parameters}
    forms, needs = dict[str, str](), dict[str, list[str]]()
    for name, parameter in parameters.items():
        panel, metavar, text = helps[name]
        words, flag = FIELD.sub(_description, " ".join(text.split())), flags[name]
        forms[flag] = f"{flag} {metavar}" if metavar else flag
        if condition := WITH.match(words):
            needs[name] = condition[1].split(" or ")
        if kinds[name] is bool:
            metavar = ""  # typer says <bool> of a flag, which takes no value
        words = words.replace("[", "\\[")
        more: Any = {"help": words, "metavar": metavar, "rich_help_panel": panel}
        if name == "half_width" and kinds[name] == float | None:
            more["parser"] = share
        if parameter.kind is Parameter.KEYWORD_ONLY:
            flag += f"/--no-{flag[2:]}" * (parameter.default is True)
            kinds[name] = Annotated[kinds[name], typer.Option(flag, **more)]
        else:
            kinds[name] = Annotated[kinds[name], typer.Argument(**more)]

    function.__annotations__ = kinds

    @wraps(function)
    def checked(**values: Any) -> None:
        given = {flags[n] for n, v in values.items() if v and v != parameters[n].default}
        for name, others in needs.items():
            if flags[name] in given and given.isdisjoint(others):
                wanted = " or ".join(forms[other] for other in others)
                raise unexpected(flags[name], f"{wanted} with it", "none")
        function(**values)

    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.command(name, help=about.strip())(checked)
    command: Any = typer.main.get_command(alone)
    command.get_help_option(typer.Context(command)).metavar = ""
    return command


def _description(field: re.Match[str]) -> str:
    from ..config import description  # slow, and few commands need it

    return description(field[1])


def names(text: str | None) -> list[str] | None:
    """Return the names in a list separated by commas; None if the option was not given."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def share(text: str) -> float:
    """Return a half-width as a share of 1; "5 %" is 0.05. Raise InputError for other texts."""
    number, percent = text.rstrip().removesuffix("%"), text.rstrip().endswith("%")
    try:
        return float(number) / (100 if percent else 1)
    except ValueError:
        raise unexpected("--half-width", "a number such as 0.05 or '5 %'", repr(text)) from None


def pairs(texts: list[str] | None, option: str, form: str) -> dict[str, str]:
    """Return the values of texts NAME=VALUE by name. Raise InputError for anything else."""
    values: dict[str, str] = {}
    for text in texts or ():
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign and value):
            raise InputError(f"{option}: expected {form}, got {text!r}")
        if name in values:
            raise InputError(f"{option}: {name!r} is given twice")
        values[name] = value
    return values
