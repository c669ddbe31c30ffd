"""What "certify" and "uncertainty+unpredictability" stand for."""

import re
from typing import Any

import pytest

from adaptive_vtt import Audit, QuestionSpace, strategies
from adaptive_vtt.benchmark.runs import BASELINES, UNIFORM
from adaptive_vtt.cli.spec_changes import settings
from adaptive_vtt.errors import InputError
from adaptive_vtt.testing import ScriptedModel

PAPER = "uncertainty+unpredictability"


def test_the_default_is_certify_where_an_audit_certifies_and_else_the_papers(
    space: QuestionSpace,
) -> None:
    widths: dict[str, dict[str, Any]] = {"certify": {"half_width": 0.2}, PAPER: {}}
    for name, options in (*widths.items(), ("certify", {"at_most": 0.4})):
        audit = Audit(space, ScriptedModel(), budget=3, **options)
        assert audit.journal.facts()["settings"]["strategy"] == name


def test_certify_without_targets_says_what_it_needs(space: QuestionSpace) -> None:
    with pytest.raises(InputError, match="needs targets to certify: give half_width or at_most"):
        Audit(space, ScriptedModel(), strategy="certify", budget=3)


@pytest.mark.parametrize("name", strategies.COMPARED)
def test_words_of_compare_are_told_what_they_are_in_an_audit(
    name: str, space: QuestionSpace
) -> None:
    with pytest.raises(InputError, match=f"'{name}': a word of 'avtt compare' alone, for") as told:
        strategies.get(name)
    typed, python = re.findall(r"(--strategy .*) \(in Python (.*)\)", str(told.value))[0]
    changes, options = settings(re.findall(r"--set (\S+)", typed)), eval(f"dict({python})")
    assert typed.startswith(f"--strategy {options['strategy']} --set ")
    assert changes["audit"]["exploration"] == options["exploration"]
    assert changes.get("certify", {}).get("surrogate") == options.get("surrogate")
    audit = Audit(space, ScriptedModel(), half_width=0.2, budget=3, **options)
    assert audit.journal.facts()["settings"]["strategy"] == options["strategy"]
    if name == UNIFORM:
        assert options == BASELINES[UNIFORM]


def test_every_strategy_has_one_line_that_ends() -> None:
    for entry in strategies.REGISTRY.entries():
        if entry.package is None:
            assert entry.about.endswith("."), entry.name
            assert len(entry.about) <= 90, entry.name
