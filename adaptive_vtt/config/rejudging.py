"""The audit of a run folder judged by another oracle; see ``adaptive_vtt.audit.rejudging``."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from ..audit.rejudging import rejudge
from ..errors import InputError
from ..journal import read_journal
from ..journal.facts import read_facts
from ..journal.files import JOURNAL
from ..results.result import Result
from ..utils.loading import file_of, is_target
from ..utils.toml import merged
from . import Spec, parse_spec
from .building import build_space
from .resuming import check_program, notes_of, spec_of

OTHERWISE = "judge it again from Python with adaptive_vtt.rejudge(DIR, space, out=...)"
"""What to do about a journal that keeps no spec."""


def rejudge_folder(
    directory: Path, oracle: str | None, changes: Mapping[str, Any], out: Path
) -> Result:
    """The answers in the run folder ``directory`` under another oracle, in the new folder ``out``.

    ``oracle``: its name, of a built-in one or of code, a file starting here; None: the audit's,
    whose fields then stay but for those that are given. ``changes``: the table of a SPEC.toml that
    holds those, under "oracle". Dataset, relations and oracle are built, and run where they are
    code, those of the audit only if they are as they were; the model is not. Raises InputError for
    fields that are none, and whatever ``rejudge`` raises.
    """
    where = directory / JOURNAL
    with closing(read_journal(where)) as journal:
        facts = read_facts(journal.facts())
    spec, base = spec_of(facts, str(where), OTHERWISE)
    check_program(facts, spec, str(where), judge=False)
    spec = _with_oracle(spec, oracle, changes)
    notes = notes_of(spec, facts.base)
    return rejudge(directory, build_space(spec, base), out=out, notes=notes)


def _with_oracle(spec: Spec, oracle: str | None, changes: Mapping[str, Any]) -> Spec:
    if other := [name for name in changes if name != "oracle"]:
        raise InputError(
            f"--set: expected oracle.FIELD, as nothing else may change, got {other[0]!r}"
        )
    table = spec.model_dump(exclude_none=True)
    kind = table["oracle"]["kind"] if oracle is None else _from_here(oracle)
    before = table["oracle"] if kind == table["oracle"]["kind"] else {"kind": kind}
    section = merged({"oracle": before}, changes)["oracle"]
    if isinstance(section, dict) and section.get("judge") is False:  # the rule alone
        del section["judge"]
    return parse_spec({**table, "oracle": section}, "rejudge")


def _from_here(oracle: str) -> str:
    """A file's oracle by its whole path: relative ones of a spec start at its folder."""
    file = file_of(oracle) if is_target(oracle) else None
    return oracle if file is None else f"{file.resolve()}:{oracle.rpartition(':')[2]}"
