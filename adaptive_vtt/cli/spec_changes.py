"""A SPEC.toml with the changes of the command line."""

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
"""Share of the answer GPs' prior uncertainty at which --demo --explore ends."""


def places_of(name: str) -> list[str]:
    """Return SECTION.FIELD of every field of SPEC.toml that has this name."""
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
    """Return the spec with the changes of the command line, and the folder its paths start at.

    Args:
        path: The SPEC.toml; None with ``demo``.
        demo: Take the bundled spec.
        flags: SECTION.FIELD -> the value of the option of that name, None if it was not given.
        sets: The values of ``--set``.
        explore: Whether to certify nothing, whatever the spec certifies, by the paper's strategy
            unless the command line names another.
    """
    if (path is None) != demo:
        raise InputError(
            "expected either a SPEC.toml or --demo, got "
            + ("both" if demo else "neither; 'avtt init DIR' writes a SPEC.toml to start from")
        )
    changes = settings(sets)
    tables = {name: value for name, value in changes.items() if isinstance(value, dict)}
    places = [f"{section}.{field}" for section, table in tables.items() for field in table]
    options = {place: f"--set {place}" for place in places}
    for place, value in flags.items():
        if value is not None:
            section, field = place.split(".")
            changes = merged(changes, {section: {field: value}})
            after = place in ("certify.prior_journal", "certify.cohort")
            options[place] = "--after" if after else f"--{field.replace('_', '-')}"
    spec, base = (DEMO, Path()) if path is None else (read_spec(path), path.parent)
    table = spec.model_dump()
    if "audit.strategy" in options:
        _leave_options(table["audit"], changes["audit"])
    if explore:
        for place, option in options.items():
            if place.startswith("certify."):
                raise not_with_explore(option)
        table["certify"] |= dict.fromkeys(("half_width", "at_most", "set_aside")) | {"discover": 0}
        table["audit"] |= {"strategy": None, "strategy_options": None}
        table["stop"] |= {"uncertainty": DEMO_TAU} if demo else {}
    elif demo and "certify.at_most" in options:  # a limit alone replaces the demo's half-width
        table["certify"]["half_width"] = None
    return parse_spec(merged(table, changes), "command line", options), base


def _leave_options(audit: Table, given: Mapping[str, Any]) -> None:
    """Remove the strategy's options from [audit] if ``given`` names another; print that."""
    mine, options = audit["strategy"], audit["strategy_options"]
    if not options or given["strategy"] == mine:
        return
    audit["strategy_options"] = None
    if "strategy_options" not in given:
        typer.echo(
            f"strategy_options {options} are left out: they belong to "
            f"{mine or 'the default strategy'}; set those of {given['strategy']} by --set "
            "'audit.strategy_options={NAME=VALUE}'",
            err=True,
        )


def not_with_explore(option: str) -> InputError:
    """Return the error for --explore together with an option that is about certificates."""
    return InputError(f"expected either --explore, which certifies nothing, or {option}, got both")


def settings(texts: Iterable[str] | None) -> Table:
    """Return the values of ``--set`` as the tables of a SPEC.toml; a word may stand without quotes.

    Raises:
        InputError: A text is no SECTION.FIELD=VALUE.
    """
    table: Table = {}
    for text in texts or ():
        name, _, value = (part.strip() for part in text.partition("="))
        setting = _toml(text) or (_toml(f"{name} = {json.dumps(value)}") if value else {})
        if not setting or "\n" in text:
            raise InputError(
                f"--set: expected SECTION.FIELD=VALUE, such as certify.discover=3, got {text!r}"
            )
        table = merged(table, setting)
    return table


def value_of(text: str) -> Any:
    """Return a value as SPEC.toml has it; a word may stand without quotes, and .2 for 0.2."""
    number = f"0{text}" if text.startswith(".") else text
    return (_toml(f"value = {text}") or _toml(f"value = {number}")).get("value", text)


def _toml(text: str) -> Table:
    try:
        return toml_of(text)
    except tomllib.TOMLDecodeError:
        return {}
