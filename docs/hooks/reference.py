"""The reference of SPEC.toml and of the command line, from the models and commands themselves.

``make reference`` writes both pages into docs/reference.
"""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from adaptive_vtt import strategies, surrogates
from adaptive_vtt.config import Spec
from adaptive_vtt.config.fleet import FleetSpec, MemberSpec
from adaptive_vtt.config.oracles import JudgeSpec
from adaptive_vtt.config.section import Section, kind_name, kinds_of, plain, shown_default
from adaptive_vtt.utils.options import Told, options_of
from adaptive_vtt.utils.registry import Registry, first_line

SPEC_HEAD = """# SPEC.toml

Every section and field, from the models that check them. `avtt init DIR` writes a short spec that
runs as it is, `avtt init --full DIR` one with every field. Paths start at the folder of the file.
A field that is not known is an error, and the message names the nearest one. Kinds that are code
of your own are `file.py:name`, `package.module:name`, or a name that an installed package
declares; see [your own parts](../how-to/own-parts.md).
"""
FLEET_HEAD = """
## FLEET.toml

Several audits under one cap: [many audits, one budget](../how-to/fleet.md).
"""
CLI_HEAD = """# Command line

Every command, from the commands themselves. Exit codes: 0 the audit ended; 2 what was given cannot
be used, one sentence says why; 3 with `--require-certified`, a target is open or invalidated;
129, 130 and 143 after SIGHUP, Ctrl-C and SIGTERM, each with the command that goes on.
"""
TABLE = "\n| {} | type | default | what it is |\n|---|---|---|---|\n"

STRATEGY_HEAD = """
### `[audit.strategy_options]`

What the strategies take that take anything.
"""
SURROGATE_HEAD = """
### `[certify.surrogate_options]`

What the surrogates take.
"""
JUDGE_MODEL = """
Its `model` is a table with the fields of `[model]`; see [judges](../how-to/judges.md).
"""


# -- SPEC.toml --------------------------------------------------------------------------------


def spec_page() -> str:
    """Every section of a SPEC.toml, every kind of it, every field of that, as Markdown."""
    parts = [SPEC_HEAD]
    for name, info in Spec.model_fields.items():
        kinds = kinds_of(info.annotation)
        parts.append(f"\n## `[{name}]`\n")
        parts += [_kind(name, kind, len(kinds) > 1) for kind in kinds]
        if name == "oracle":
            parts += ["\n### `[oracle.judge]`\n", _kind(name, JudgeSpec, False), JUDGE_MODEL]
        if name == "audit":
            parts += _options(strategies.REGISTRY, STRATEGY_HEAD)
        if name == "certify":
            parts += _options(surrogates.REGISTRY, SURROGATE_HEAD)
    parts.append(FLEET_HEAD)
    for name, section in (("[fleet]", FleetSpec), ("[[member]]", MemberSpec)):
        parts.append(f"\n### `{name}`\n{_kind(name, section, False)}")
    return "".join(parts)


def _options(parts: Registry, head: str) -> Iterator[str]:
    """What each built-in part that takes options is, and those."""
    yield head
    for name in parts.built_in:
        made = parts.get(name)
        if options := options_of(made):
            rows = "".join(map(_told, options))
            title = f"\n#### {parts.kind}: `{name}`\n\n{first_line(made)}\n"
            yield f"{title}{TABLE.format('option')}{rows}"


def _told(option: Told) -> str:
    default = f"`{_json(plain(option.default))}`"
    return _row(f"`{option.name}`", _type(option.annotation), default, option.option.about)


def _kind(section: str, kind: type[Section], several: bool) -> str:
    word = kind_name(kind)
    named = f'`kind = "{word}"`' if word else "code of your own"
    head = f"\n### {section}: {named}\n" if several else ""
    fields = [_field(n, f) for n, f in kind.model_fields.items() if n != "kind" or not word]
    table = TABLE.format("field") + "".join(fields) if fields else ""
    return f"{head}\n{kind.__doc__}\n{table}"


def _field(name: str, field: FieldInfo) -> str:
    if field.is_required():
        default = "needed"
    else:
        value = shown_default(field)
        default = "" if value is None else f"`{_json(value)}`"
    return _row(f"`{name}`", _type(field.annotation), default, field.description or "")


def _json(value: Any) -> str:
    return json.dumps(value)


def _type(annotation: Any, switch: bool = False) -> str:
    """A type in words of TOML, or of a command line, where a truth value is a ``switch``."""
    if get_origin(annotation) in (UnionType, Union):
        kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
        return " or ".join(_type(kind, switch) for kind in kinds)
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{_json(word)}`" for word in get_args(annotation))
    if get_origin(annotation) is list:
        return f"list of {_type(get_args(annotation)[0])}"
    if get_origin(annotation) is dict:
        return "table"
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return "table"
    truth = "switch" if switch else "true or false"
    words = {str: "text", int: "whole number", float: "number", bool: truth, Path: "path"}
    return words.get(annotation, "any")


# -- the command line -------------------------------------------------------------------------


def cli_page() -> str:
    """Every command with its arguments and options, as Markdown."""
    return CLI_HEAD + "".join(_command(*found) for found in all_commands())


def all_commands() -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words it is called by."""
    from adaptive_vtt.cli.main import SUMMARIES, command

    for name in SUMMARIES:
        yield from _commands(command(name), f"avtt {name}")


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield name, command
        return
    for word, found in below.items():
        yield from _commands(found, f"{name} {word}")


def _command(name: str, command: Any) -> str:
    about, _, example = (command.help or "").partition("Example: ")
    said = f"\n```text\n{example.strip()}\n```\n" if example else ""
    hints = get_type_hints(inspect.unwrap(command.callback))
    rows = [
        _option(option, hints[option.name]) for option in command.params if option.name in hints
    ]
    table = TABLE.format("option") + "".join(rows) if rows else ""
    paragraphs = "\n\n".join(_code(" ".join(part.split())) for part in about.split("\n\n"))
    return f"\n## {name}\n\n{paragraphs.strip()}\n{said}{table}"


def _option(option: Any, annotation: Any) -> str:
    if option.param_type_name == "argument":
        word = f"`{option.metavar or option.name.upper()}`"
    else:
        word = ", ".join(f"`{o}`" for o in [*option.opts, *option.secondary_opts])
    default = option.default
    shown = "" if default in (None, False) or callable(default) else f"`{default}`"
    if option.required:
        shown = "needed"
    return _row(word, _type(annotation, switch=True), shown, _code(option.help or ""))


def _code(text: str) -> str:
    """With options set as code: two dashes are one in prose."""
    return re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)", r"`\1`", text)


def _row(*cells: str) -> str:
    safe = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(safe)} |\n"


PAGES = {"spec.md": spec_page, "cli.md": cli_page}
"""Name in docs/reference -> what makes that page."""

if __name__ == "__main__":
    for page, made in PAGES.items():
        (Path(__file__).parents[1] / "reference" / page).write_text(made(), encoding="utf-8")
