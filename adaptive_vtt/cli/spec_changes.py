"""A SPEC.toml with what the command line changes of it."""

from pathlib import Path
from typing import Any

from ..errors import InputError
from ..spec import DEMO, Spec, parse_spec, read_spec

DEMO_TAU = 0.25
"""Where the demo's exploration ends: this share of the answer GPs' uncertainty is left."""
_SECTIONS = {
    "uncertainty": "stop",
    "gate": "stop",
    "half_width": "certify",
    "at_most": "certify",
    "confidence": "certify",
    "guarantee": "certify",
    "targets": "certify",
    "self_taught": "certify",
    "to": "track",
    "prior_journal": "certify",
    "cohort": "certify",
    "discover": "certify",
}
"""Where an option of the command line stands in a spec, if not under [audit]."""


def read(
    path: Path | None, demo: bool, changes: dict[str, Any], explore: bool = False
) -> tuple[Spec, Path]:
    """The spec, with what the command line changes, and the folder its paths start at.

    ``explore``: nothing is certified, whatever the spec says, and unless the command line names a
    strategy it is the paper's.
    """
    if (path is None) != demo:
        raise InputError(
            "expected either a SPEC.toml or --demo, got "
            + ("both" if demo else "neither; 'avtt init DIR' writes a SPEC.toml to start from")
        )
    spec, base = (DEMO, Path()) if path is None else (read_spec(path), path.parent)
    table = spec.model_dump()
    if explore:
        _explore(table, demo, changes)
    elif demo:
        _decide_alone(table, changes)
    for name, value in changes.items():
        if value is not None:
            section = _SECTIONS.get(name, "audit")
            table[section] = {**(table[section] or {}), name: value}
    return parse_spec(table, "command line"), base


def one_too_many(option: str) -> InputError:
    """What is wrong with --explore beside an option that is about certificates."""
    option = option.replace("_", "-")
    return InputError(
        f"expected either --explore, which certifies nothing, or --{option}, got both"
    )


def _explore(table: dict[str, Any], demo: bool, changes: dict[str, Any]) -> None:
    """Takes what is certified out of a spec's table, and what only certificates need."""
    for name, section in _SECTIONS.items():
        if section == "certify" and changes.get(name) is not None:
            raise one_too_many(name)
    table["certify"]["half_width"] = table["certify"]["at_most"] = None
    table["certify"] |= {"discover": 0, "set_aside": None}
    table["audit"]["strategy"] = table["audit"]["strategy_options"] = None
    if demo:
        table["stop"]["uncertainty"] = DEMO_TAU


def _decide_alone(table: dict[str, Any], changes: dict[str, Any]) -> None:
    """Takes the demo's own half-width back, where the command line names a limit and no width."""
    if changes.get("at_most") is not None:
        table["certify"]["half_width"] = None
