"""A SPEC.toml with what the command line changes of it, and the options that change it."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer

from ..config import DEMO, Spec, parse_spec, read_spec
from ..config.section import kinds_of
from ..errors import InputError
from ..utils.files import Table, merged, toml_of

DEMO_TAU = 0.25
"""Where the demo's exploration ends: this share of the answer GPs' uncertainty is left."""


def places_of(name: str) -> list[str]:
    return [
        f"{section}.{name}"
        for section, info in Spec.model_fields.items()
        if any(name in kind.model_fields for kind in kinds_of(info.annotation))
    ]


def read(
    path: Path | None,
    demo: bool,
    flags: Mapping[str, Any],
    sets: Iterable[str] | None = None,
    *,
    explore: bool = False,
) -> tuple[Spec, Path]:
    """The spec, with what the command line changes, and the folder its paths start at.

    ``flags``: SECTION.FIELD -> the value of the option of that name, None where it was not given;
    ``sets``: what ``--set`` gave. ``explore``: nothing is certified, whatever the spec says, and
    unless the command line names a strategy it is the paper's.
    """
    if (path is None) != demo:
        raise InputError(
            "expected either a SPEC.toml or --demo, got "
            + ("both" if demo else "neither; 'avtt init DIR' writes a SPEC.toml to start from")
        )
    changes, given = settings(sets), {n: value for n, value in flags.items() if value is not None}
    called = {place: f"--set {place}" for place in _places(changes)}
    called |= {place: _option(place) for place in given}
    for place, value in given.items():
        section, field = place.split(".")
        changes = merged(changes, {section: {field: value}})
    spec, base = (DEMO, Path()) if path is None else (read_spec(path), path.parent)
    table = spec.model_dump()
    if "audit.strategy" in called:
        _leave_options(table, changes["audit"])
    if explore:
        _explore(table, demo, called)
    elif demo and "certify.at_most" in called:  # a limit alone takes the demo's own width back
        table["certify"]["half_width"] = None
    return parse_spec(merged(table, changes), "command line", called), base


def one_too_many(option: str) -> InputError:
    """What is wrong with --explore beside an option that is about certificates."""
    return InputError(f"expected either --explore, which certifies nothing, or {option}, got both")


def _places(changes: Mapping[str, Any]) -> list[str]:
    tables = {name: value for name, value in changes.items() if isinstance(value, dict)}
    return [f"{section}.{field}" for section, table in tables.items() for field in table]


def _option(place: str) -> str:
    """The option that sets a field: --after two of them, others the one of their name."""
    if place in ("certify.prior_journal", "certify.cohort"):
        return "--after"
    return "--" + place.partition(".")[2].replace("_", "-")


def _leave_options(table: Table, given: Mapping[str, Any]) -> None:
    """Takes the options of the spec's strategy out of its table, where the command line names
    another, and says so where it does not give that one's."""
    mine, options = table["audit"]["strategy"], table["audit"]["strategy_options"]
    if not options or given["strategy"] == mine:
        return
    table["audit"]["strategy_options"] = None
    if "strategy_options" not in given:
        typer.echo(
            f"strategy_options {options} are left out: they are those of "
            f"{mine or 'the default strategy'}; for {given['strategy']}, give its own by --set "
            "'audit.strategy_options={NAME=VALUE}'",
            err=True,
        )


def _explore(table: Table, demo: bool, called: Mapping[str, str]) -> None:
    for place, option in called.items():
        if place.startswith("certify."):
            raise one_too_many(option)
    table["certify"]["half_width"] = table["certify"]["at_most"] = None
    table["certify"] |= {"discover": 0, "set_aside": None}
    table["audit"]["strategy"] = table["audit"]["strategy_options"] = None
    if demo:
        table["stop"]["uncertainty"] = DEMO_TAU


def settings(texts: Iterable[str] | None) -> Table:
    """What ``--set`` gave, as the tables of a SPEC.toml; a word may stand without quotes.

    Raises InputError for what is no SECTION.FIELD=VALUE.
    """
    found: Table = {}
    for text in texts or ():
        found = merged(found, _setting(text))
    return found


def value_of(text: str) -> Any:
    """A value as SPEC.toml has it; a word may stand without quotes, and .2 for 0.2."""
    number = f"value = 0{text}" if text.startswith(".") else ""
    for line in (f"value = {text}", number):
        try:
            return toml_of(line)["value"]
        except (tomllib.TOMLDecodeError, KeyError):
            continue
    return text


def _setting(text: str) -> Table:
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
