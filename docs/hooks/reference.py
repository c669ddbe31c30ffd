"""Write the reference of SPEC.toml, the commands, Python and result.json, from the models,
commands and docstrings themselves.

``make reference`` writes the pages into docs/reference.
"""

import ast
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent
from types import ModuleType, NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

import adaptive_vtt
from adaptive_vtt import strategies, surrogates
from adaptive_vtt.config import Spec
from adaptive_vtt.config.oracles import JudgeSpec
from adaptive_vtt.config.section import Section, kind_name, kinds_of, plain, shown_default
from adaptive_vtt.utils.options import PartOption, options_of
from adaptive_vtt.utils.registry import Registry, first_line

SPEC_HEAD = """# SPEC.toml

Every section and field. `avtt init DIR` writes a short spec that runs, `avtt init --full DIR` one
with every field. Paths start at the folder of the file. An unknown field is an error, and the
message names the nearest known one. A kind may also be [your own part](../how-to/own-parts.md),
`file.py:name` or `package.module:name`.
"""
CLI_HEAD = """# Command line

Every command with its options.

| exit code | meaning |
|---|---|
| 0 | done; of a gate: every rule passes |
| 1 | a rule of a gate fails |
| 2 | the input cannot be used; one sentence explains why |
| 3 | with `--require-certified`: a target is open or invalidated |
| 4 | a rule of a gate is open; of `verify`: a file is older than the journal |
| 129, 130, 143 | ended by SIGHUP, Ctrl-C or SIGTERM; the last line continues |
"""
PACKAGE = adaptive_vtt.__name__
SECTIONS = {"Args": "argument", "Attributes": "attribute", "Returns": "returns", "Raises": "error"}
"""Sections of docstrings in Google's style -> the word for their entries."""
TABLE = "\n| {} | type | default | what it is |\n|---|---|---|---|\n"

STRATEGY_HEAD = """
### `[audit.strategy_options]`

Options of the built-in strategies.
"""
PYTHON_HEAD = """# Python

The public names of `adaptive_vtt`, which are imported on first use. Everything else may change
without notice. Datasets, relations, oracles, models and strategies take the options that
[SPEC.toml](spec.md) has under the same names.
"""
RESULT_HEAD = """# result.json

The fields of `DIR/result.json`, of `avtt audit --json` and of `Result.to_dict()`. Unknown values
are `null`; rates are shares from 0 to 1. In audits that certify nothing, `estimate` is a raw share
and there are no intervals. `avtt verify DIR` compares every field with the journal. The JSON schema
is `adaptive_vtt/results/result.schema.json`.
"""
SURROGATE_HEAD = """
### `[certify.surrogate_options]`

Options of the built-in surrogates.
"""
ORACLE_HEAD = """
Without this section the data decide, as in `avtt init`: `top-class` where each image has one class,
`multiple-choice` or `contains-truth` for questions, `correctness` for all else. An audit prints
the reason before it asks anything.
"""
JUDGE_MODEL = """
Its `model` is a table with the fields of `[model]`; see [judges](../how-to/vqa.md#the-judge).
"""


# -- SPEC.toml --------------------------------------------------------------------------------


def spec_page() -> str:
    """Return every section of a SPEC.toml with its kinds and their fields, as Markdown."""
    parts = [SPEC_HEAD]
    for name, info in Spec.model_fields.items():
        kinds = kinds_of(info.annotation)
        parts.append(f"\n## `[{name}]`\n")
        parts += [_kind(name, kind, len(kinds) > 1) for kind in kinds]
        if name == "oracle":
            parts.insert(-len(kinds), ORACLE_HEAD)
            parts += ["\n### `[oracle.judge]`\n", _kind(name, JudgeSpec, False), JUDGE_MODEL]
        if name == "audit":
            parts += _options(strategies.REGISTRY, STRATEGY_HEAD)
        if name == "certify":
            parts += _options(surrogates.REGISTRY, SURROGATE_HEAD)
    return "".join(parts)


def _options(parts: Registry, head: str) -> Iterator[str]:
    """Return each built-in part that takes options, and these options."""
    yield head
    for name in parts.built_in:
        made = parts.get(name)
        if options := options_of(made):
            rows = "".join(map(_option_row, options))
            title = f"\n#### {parts.kind}: `{name}`\n\n{first_line(made)}\n"
            yield f"{title}{TABLE.format('option')}{rows}"


def _option_row(option: PartOption) -> str:
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
    """Return a type in words of TOML, or of the command line, where a bool is a ``switch``."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is None:
        return _plain_type(annotation, switch)
    if origin is Literal:
        return ", ".join(f"`{_json(word)}`" for word in parts)
    words = [_type(part, switch) for part in parts if part is not NoneType]
    several = ", ".join(words) if switch else f"[{', '.join(words)}]"
    kinds = {Annotated: words[0], list: f"list of {words[0]}", dict: "table", tuple: several}
    return kinds.get(origin, " or ".join(words))


def _plain_type(annotation: Any, switch: bool) -> str:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return "table"
    truth = "switch" if switch else "true or false"
    words = {str: "text", int: "whole number", float: "number", bool: truth, Path: "path"}
    return words.get(annotation, "any")


# -- the command line -------------------------------------------------------------------------


def cli_page() -> str:
    """Return every command with its arguments and options, as Markdown."""
    return CLI_HEAD + "".join(_command(*found) for found in all_commands())


def all_commands() -> Iterator[tuple[str, Any]]:
    """Return every command with the words that call it."""
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
    text = (option.help or "").replace("\\[", "[")  # which typer would take for markup
    return _row(word, _type(annotation, switch=True), shown, _code(text))


def _code(text: str) -> str:
    """Return a text with options set as code: two dashes are one in prose."""
    return re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)", r"`\1`", text)


def _row(*cells: str) -> str:
    safe = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(safe)} |\n"


# -- Python -----------------------------------------------------------------------------------


def python_page() -> str:
    """Return every public name with its signature and docstring, as Markdown."""
    pages = [PYTHON_HEAD]
    for section, parts in public_parts().items():
        room = getattr(adaptive_vtt, section.removeprefix("adaptive_vtt."), None)
        about = "" if room is None else f"{first_line(room)}\n"
        pages.append(f"\n## {section}\n\n{about}".rstrip("\n") + "\n")
        pages += [_entry(*each) for each in parts.items()]
    return "".join(pages)


def public_parts() -> dict[str, dict[str, Any]]:
    """Return the public names with what they name: those of the package, then the others of each of
    its public modules."""
    parts = {name: getattr(adaptive_vtt, name) for name in adaptive_vtt.__all__}
    rooms = {name: part for name, part in parts.items() if isinstance(part, ModuleType)}
    parts["audit"] = rooms.pop("audit").audit  # a module that is called as its function
    sections = {"adaptive_vtt": {n: part for n, part in parts.items() if n not in rooms}}
    known = {id(part) for part in sections["adaptive_vtt"].values()}
    for name, room in rooms.items():
        own = {f"{name}.{each}": inspect.unwrap(getattr(room, each)) for each in room.__all__}
        section = {each: part for each, part in own.items() if id(part) not in known}
        sections[f"adaptive_vtt.{name}"] = section
    return sections


def _entry(name: str, found: Any) -> str:
    """Return a heading, the signature and the docstring; for public classes and protocols also a
    table of methods and properties; for a registry its names, for another value itself."""
    head = f"\n### {name}\n\n"
    if isinstance(found, Registry):
        return f"{head}By name: {', '.join(f'`{each}`' for each in found.built_in)}.\n"
    if not (inspect.isclass(found) or inspect.isfunction(found)):
        kinds = get_args(found)[0] if hasattr(found, "__metadata__") else found
        return f"{head}`{str(kinds).replace('typing.', '')}`\n"
    # "py" is coloured as Python, and not run, as the tests run a page's examples
    code = f"```py\n{_signature(found.__name__, found)}\n```\n"
    members = ""
    if inspect.isclass(found) and ("." not in name or vars(found).get("_is_protocol")):
        members = "".join(_member(*each) for each in vars(found).items())
        members = members and f"\n| member | returns | description |\n|---|---|---|\n{members}"
    text = _described(inspect.getdoc(found) or "")
    return f"{head}{code}\n{text}\n{_options_besides(found, text)}{members}"


def _options_besides(part: Any, text: str) -> str:
    """Return the table of the options that annotations describe and ``text`` does not."""
    options = [o for o in options_of(part) if f"| `{o.parameter}` |" not in text]
    rows = [(f"``{option.parameter}``", option.option.about) for option in options]
    return _listed("option", rows) if rows else ""


def undescribed(part: Any) -> list[str]:
    """Return the parameters that neither the docstring of a part nor annotations describe."""
    entry = _entry("", part)
    names = [each[1] for text in _parameters_of(part) if (each := re.match(r"\**(\w+)", text))]
    return [name for name in names if not re.search(rf"`\**{name}`,? .*\|", entry)]


def _described(docstring: str) -> str:
    """Return a docstring as Markdown: its lists of parameters, results and errors as tables."""
    bullet = r"- (``\*{0,2}\w+``(?:, ``\w+``)*): (.+(?:\n[ ]+.+)*)"
    text = re.sub(
        rf"(?:^{bullet}(?:\n|$))+",
        lambda found: _listed("argument", re.findall(bullet, found[0])),
        docstring,
        flags=re.M,
    )
    for section, word in SECTIONS.items():
        body = re.compile(rf"^{section}:\n((?:(?:[ ]+.*)?(?:\n|$))+)", flags=re.M)
        text = body.sub(lambda found, word=word: _section(word, found[1]), text)
    text = re.sub(r"^Raises (\w+)", r"**Raises:** `\1`", text, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text.strip())


def _section(word: str, body: str) -> str:
    """Return a section of a docstring in Google's style as a table, or as a line without names."""
    entries = re.findall(r"^(\*{0,2}[\w.]+)(?: \([^)]*\))?: (.+(?:\n[ ]+.+)*)", dedent(body), re.M)
    if word == "returns" or not entries:
        return f"**{word.capitalize()}:** {' '.join(body.split())}\n"
    return _listed(word, [(f"``{name}``", text) for name, text in entries])


def _listed(word: str, entries: list[tuple[str, str]]) -> str:
    rows = (_row(name.replace("``", "`"), " ".join(text.split())) for name, text in entries)
    return f"\n| {word} | description |\n|---|---|\n{''.join(rows)}\n"


def _member(name: str, found: Any) -> str:
    """Return the row of a public method or property, nothing for others."""
    inner = getattr(found, "fget", None) or getattr(found, "func", None) or found
    inner = getattr(inner, "__func__", inner)
    if name[0] == "_" or not inspect.isfunction(inner) or not (text := inspect.getdoc(inner)):
        return ""
    sentence = " ".join(re.split(r"(?<=\.)\s|\n\n", text)[0].split())
    is_method = inspect.isfunction(found) or isinstance(found, classmethod | staticmethod)
    given = _parsed(inner).returns
    returns = "" if given is None else f"`{ast.unparse(_Plain().visit(given))}`"
    call = f"{name}({', '.join(_short(inner))})" if is_method else name
    return _row(f"`{call}`", returns, sentence)


def _short(function: Any) -> list[str]:
    """Return the parameters of a method without their types."""
    return [
        re.sub(r"^(\**\w*)(?:: .*?)?( = .*)?$", r"\1\2", each) for each in _parameters(function)
    ]


def _signature(name: str, found: Any, most: int = 100) -> str:
    """Return the signature without Annotated and quotes, in one line of ``most`` or in several."""
    parameters = _parameters_of(found)
    given = None if inspect.isclass(found) else _parsed(found).returns
    end = ")" if given is None else f") -> {ast.unparse(_Plain().visit(given))}"
    line = f"{name}({', '.join(parameters)}{end}"
    lines = ",\n    ".join(parameters)
    return line if len(line) <= most else f"{name}(\n    {lines},\n{end}"


def _parameters_of(part: Any) -> list[str]:
    return _of_class(part) if inspect.isclass(part) else _parameters(part)


def _of_class(kind: Any) -> list[str]:
    """Return the parameters of its constructor, or the fields that stand for them."""
    ours = [each for each in kind.__mro__ if each.__module__.startswith(PACKAGE)]
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        nodes = [node for each in reversed(ours) for node in _parsed(each).body]
        written = {ast.unparse(n.target): n for n in nodes if isinstance(n, ast.AnnAssign)}
        taken = [f for f in fields(kind) if f.init] if is_dataclass(kind) else []
        names = [f.name for f in taken if f.name in written] or [*written]
        lines = [_parameter(n, written[n].annotation, written[n].value) for n in names]
        by_name = [f.kw_only for f in taken]
        return (
            [*lines[: by_name.index(True)], "*", *lines[by_name.index(True) :]]
            if any(by_name)
            else lines
        )
    made = [vars(each).get("__init__") for each in ours]
    made = [each for each in made if each is not None and each.__module__.startswith(PACKAGE)]
    return _parameters(made[0]) if made else []  # typing gives protocols one of its own


def _parameters(function: Any) -> list[str]:
    """Return its parameters without self and cls."""
    taken = _parsed(function).args
    plain = [*taken.posonlyargs, *taken.args]
    defaults = [None] * (len(plain) - len(taken.defaults)) + taken.defaults
    found = [_parameter(a.arg, a.annotation, d) for a, d in zip(plain, defaults, strict=True)]
    if taken.vararg or taken.kwonlyargs:
        found.append(
            _parameter(f"*{taken.vararg.arg}", taken.vararg.annotation) if taken.vararg else "*"
        )
    named = zip(taken.kwonlyargs, taken.kw_defaults, strict=True)
    found += [_parameter(a.arg, a.annotation, default) for a, default in named]
    if taken.kwarg:
        found.append(_parameter(f"**{taken.kwarg.arg}", taken.kwarg.annotation))
    return found[1:] if found[:1] in (["self"], ["cls"]) else found


@cache  # every part is read for its signature, and again for its table
def _parsed(found: Any) -> Any:
    return ast.parse(dedent(inspect.getsource(found))).body[0]


def _parameter(name: str, annotation: Any, default: Any = None) -> str:
    kind = "" if annotation is None else f": {ast.unparse(_Plain().visit(annotation))}"
    return name + kind + ("" if default is None else f" = {ast.unparse(default)}")


class _Plain(ast.NodeTransformer):
    """Transformer that removes Annotated and quotes from an annotation."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        kind = ast.unparse(node.value)
        if kind == "Annotated" and isinstance(node.slice, ast.Tuple):
            return self.visit(node.slice.elts[0])
        return node if kind == "Literal" else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str):
            return self.visit(ast.parse(node.value, mode="eval").body)
        return node


# -- result.json ------------------------------------------------------------------------------


def result_page() -> str:
    """Return every field of a result, and of the tables in it, as Markdown."""
    published = Path(adaptive_vtt.__file__).parent / "results" / "result.schema.json"
    schema = json.loads(published.read_text(encoding="utf-8"))
    parts = [RESULT_HEAD, _fields(schema)]
    places: dict[str, str] = {}
    for name, field in schema["properties"].items():
        for kind in re.findall(r"#/\$defs/(\w+)", json.dumps(field)):
            places[kind] = name
    for kind, name in places.items():
        part = schema["$defs"][kind]
        parts.append(f"\n## `{name}`\n\n{part['description']}\n{_fields(part)}")
    return "".join(parts)


def _fields(schema: dict[str, Any]) -> str:
    rows = (
        _row(f"`{name}`", _json_type(field), field.get("description", ""))
        for name, field in schema["properties"].items()
    )
    return "\n| field | type | meaning |\n|---|---|---|\n" + "".join(rows)


def _json_type(field: dict[str, Any]) -> str:
    if parts := field.get("anyOf"):
        return " or ".join(_json_type(part) for part in parts)
    if words := field.get("enum"):
        return "text" if len(words) > 6 else ", ".join(f"`{json.dumps(word)}`" for word in words)
    if "$ref" in field or field.get("type") == "object":
        return "table"
    if field.get("type") == "array":
        return f"list of {_json_type(field['items'])}"
    if "const" in field:
        return f"`{field['const']}`"
    names = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    return names.get(field["type"], str(field["type"]))


PAGES = {
    "spec.md": spec_page,
    "cli.md": cli_page,
    "python.md": python_page,
    "result-json.md": result_page,
}
"""Name in docs/reference -> function that makes that page."""

if __name__ == "__main__":
    for page, made in PAGES.items():
        (Path(__file__).parents[1] / "reference" / page).write_text(made(), encoding="utf-8")
