"""The audit of a run folder judged by another oracle; see ``adaptive_vtt.rejudging``."""

import tomllib
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..journal import read_journal
from ..journal.facts import read_facts
from ..journal.files import JOURNAL
from ..oracles import REGISTRY
from ..rejudging import rejudge
from ..results import Result
from ..utils.loading import file_of, is_target
from ..utils.toml import toml_of
from . import Spec, parse_spec
from .building import build_space
from .resuming import check_program, notes_of, spec_of

OTHERWISE = "judge it again from Python with adaptive_vtt.rejudge(DIR, space, out=...)"
"""What to do about a journal that keeps no spec."""


def rejudge_folder(
    directory: Path, oracle: str | None, options: Iterable[str], out: Path
) -> Result:
    """The answers in the run folder ``directory`` under another oracle, in the new folder ``out``.

    ``oracle``: its name, of a built-in one or of code, a file starting here; None: the audit's,
    whose options then stay but for those that are given. ``options``: NAME=VALUE each, the values
    as in TOML. Dataset, relations and oracle are built, and run where they are code, those of the
    audit only if they are as they were; the model is not. Raises InputError for options that are
    none, and whatever ``rejudge`` raises.
    """
    where = directory / JOURNAL
    with closing(read_journal(where)) as journal:
        facts = read_facts(journal.facts())
    spec, base = spec_of(facts, str(where), OTHERWISE)
    check_program(facts, spec, str(where), judge=False)
    spec = _with_oracle(spec, oracle, dict(map(_option, options)))
    notes = notes_of(spec, facts.base)
    return rejudge(directory, build_space(spec, base), out=out, notes=notes)


def _with_oracle(spec: Spec, oracle: str | None, options: dict[str, Any]) -> Spec:
    table = spec.model_dump(exclude_none=True)
    before = table["oracle"]
    kind = before["kind"] if oracle is None else _from_here(oracle)
    section: dict[str, Any] = {"kind": kind}
    if oracle is None or kind == before["kind"]:
        section = dict(before)
    if is_target(kind) or REGISTRY.package_of(kind) is not None:
        section["options"] = {**section.get("options", {}), **options}
    else:
        section.update(options)
        if section.get("judge") is False:  # the rule alone
            del section["judge"]
    return parse_spec({**table, "oracle": section}, "rejudge")


def _from_here(oracle: str) -> str:
    """A file's oracle by its whole path: relative ones of a spec start at its folder."""
    file = file_of(oracle) if is_target(oracle) else None
    return oracle if file is None else f"{file.resolve()}:{oracle.rpartition(':')[2]}"


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (equals and name.strip() and value.strip()):
        raise InputError(f"--option: expected NAME=VALUE, such as threshold=0.7, got {text!r}")
    try:
        return name.strip(), toml_of(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:  # a word may stand without quotes
        return name.strip(), value.strip()
