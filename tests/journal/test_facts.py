"""What journals say is read with types."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pandas as pd
import pytest
from pydantic import TypeAdapter

from adaptive_vtt import Audit, QuestionSpace, families
from adaptive_vtt.certify import named_targets
from adaptive_vtt.datasets import from_table
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.families import (
    Filtered,
    OfConcept,
    OfGroup,
    OfRelation,
    OfRelationConcept,
    OfSeverity,
    OfSlice,
    Overall,
    TargetId,
)
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.journal.facts import Facts, read_facts, read_lost
from adaptive_vtt.results.result import summarise
from adaptive_vtt.testing import ScriptedModel

FAMILIES = ["overall", "concepts", "relations", "severities", "relation-concepts"]
FAMILIES += ["relation-sides", "group:site", "mine"]
WHERE = {"mine": {"relation": ["rotation"], "truth": [1]}}

READ = TypeAdapter[TargetId](TargetId).validate_python


def space() -> QuestionSpace:
    labels = pd.DataFrame({"a b": [0, 1, 0, 1], "c: d": [1, 0, 0, 1]})
    metadata = pd.DataFrame({"site": ["north east", "south", "south", "1"]})
    dataset = from_table(None, labels, metadata=metadata)
    return QuestionSpace(dataset, ["identity", "rotation"], severities=[1, 2])


def audited(budget: int = 8) -> MemoryJournal:
    journal = MemoryJournal()
    options: dict[str, Any] = {"targets": FAMILIES, "where": WHERE, "half_width": 0.2, "seed": 3}
    options |= {"surrogate": False, "budget": budget, "journal": journal}
    Audit(space(), ScriptedModel(), **options).run()
    return journal


# -- targets -----------------------------------------------------------------------------------


def test_names_are_made_of_ids_that_the_journal_holds() -> None:
    made = [target.id for target in named_targets(space(), FAMILIES, WHERE)]
    assert len(set(made)) == len(made)
    facts = audited(1).facts()
    names = [target.name for target in made]
    assert facts["certificate"]["targets"] == names
    assert [READ(row) for row in facts["certificate"]["ids"]] == made
    assert {target.kind for target in made} == {
        "overall",
        "concept",
        "relation",
        "severity",
        "relation-concept",
        "group",
        "filter",
    }


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (Overall(), "overall error"),
        (Overall(also=("relation:fog",)), "overall error"),
        (Overall("misclassification rate"), "overall misclassification rate"),
        (OfConcept("c", 1, "miss rate"), "c: miss rate"),
        (OfRelation("r"), "relation r: error"),
        (OfSeverity("r", 2, "label error"), "relation r severity 2: label error"),
        (OfRelationConcept("r", "c", 0, "EFR"), "relation r, c: EFR"),
        (OfGroup("site", "x"), "site x: error"),
        (Filtered("mine"), "mine"),
        (OfSlice("dark"), "slice dark"),
    ],
)
def test_the_name_of_every_kind_of_target(target: TargetId, name: str) -> None:
    assert target.name == name
    read = READ(target.as_dict())
    assert (read, read.names) == (target, target.names)


def test_every_family_says_what_it_goes_by() -> None:
    kinds = [family.kind for family in families.FAMILIES]
    assert len(set(kinds)) == len(kinds)
    for name in families.ASKED:
        family = families.family_of(name)
        assert family is not None
        assert name in family.asked
    assert families.family_of("relations:fog") is None
    assert families.family_of("relation:fog") is families.OfRelation
    dark, fog = OfSlice("dark"), OfRelationConcept("fog", "polyp", 1, "EFR")
    assert [dark.handle, fog.handle] == ["slice:dark", "relation-concept:fog:polyp"]
    assert dark.is_named("dark")
    assert fog.is_named("concept:polyp")
    assert not fog.is_named("concept:fog")


def test_a_relation_is_asked_for_by_the_name_that_rules_have_for_it() -> None:
    (found,) = named_targets(space(), ["relation:identity"])
    assert found.id.handle == "relation:identity"
    assert found.id in {target.id for target in named_targets(space(), ["relations"])}
    with pytest.raises(InputError, match=r"unknown relation 'fog'"):
        named_targets(space(), ["relation:fog"])


def test_results_say_what_each_target_is_about() -> None:
    journal = audited()
    result = summarise(journal)
    rows = json.loads(json.dumps(result.to_dict(), allow_nan=False))["targets"]
    certificate = read_facts(journal.facts()).certificate
    assert certificate is not None
    for row, target in zip(rows, certificate.ids, strict=True):
        assert row["target"] == target.name
        assert {name: row[name] for name in target.as_dict()} == target.as_dict()
    plain = MemoryJournal()
    Audit(space(), ScriptedModel(), budget=4, journal=plain).run()
    kinds = summarise(plain).targets["kind"].tolist()
    assert kinds[0] == "overall"
    assert set(kinds) == {"overall", "concept", "relation"}


# -- damage ------------------------------------------------------------------------------------


@cache
def short() -> MemoryJournal:
    return audited(1)


def changed(change: Callable[[dict[str, Any]], object]) -> Facts:
    facts = short().facts()
    change(facts)
    return read_facts(facts)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda f: f.pop("space"), "no audit was begun"),
        (lambda f: f["space"].pop("variants"), "fact 'space.variants' is damaged"),
        (lambda f: f["settings"].update(seed="x"), "fact 'settings.seed' is damaged"),
        (lambda f: f["certificate"].update(aim=float("nan")), "fact 'certificate.aim' is damaged"),
        (lambda f: f["certificate"]["ids"][0].update(kind="?"), r"'certificate.ids.0.kind' is dam"),
        (lambda f: f.update(ended=[]), "fact 'ended' is damaged"),
    ],
)
def test_a_damaged_fact_is_named(change: Callable[[dict[str, Any]], object], where: str) -> None:
    with pytest.raises(JournalError, match=where):
        changed(change)
    with pytest.raises(JournalError, match="fact 'counted' is damaged"):
        read_lost({"counted": 7})


# -- numbers of questions ----------------------------------------------------------------------
