"""result.json is what its published schema says, whatever was audited; older ones still verify."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import adaptive_vtt as avtt
from adaptive_vtt.cli.verify import check
from adaptive_vtt.errors import JournalError
from adaptive_vtt.oracles import Consistency, TopClass
from adaptive_vtt.results.result import SCHEMA_VERSION, Result
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from tests.helpers.captioned import faulty
from tests.helpers.captioned import space as caption_space
from tests.helpers.result_file import PUBLISHED, ResultFile, schema, text

WIDE: dict[str, Any] = {"half_width": 0.3, "surrogate": False, "seed": 1}


def run(model: Any = None, oracle: Any = None, **options: Any) -> Result:
    space = avtt.QuestionSpace(tiny_dataset(), ["identity", "rotation"], oracle=oracle)
    return avtt.Audit(space, model or ScriptedModel(), **{"budget": 10, **options}).run()


SOME: dict[str, Any] = {
    "targets": ["overall", "severities", "relation-sides", "some"],
    "where": {"some": {"truth": [1]}},
}


KINDS: dict[str, Callable[[], Result]] = {
    "nothing certified": run,
    "nothing asked": lambda: avtt.Audit(
        avtt.QuestionSpace(tiny_dataset()), ScriptedModel(), **WIDE
    ).result(),
    "certified": lambda: run(**WIDE),
    "decided": lambda: run(at_most=0.3, surrogate=False),
    "classes": lambda: run(oracle=TopClass(), targets=["misclassified", "concepts"], **WIDE),
    "refusals": lambda: run(ScriptedModel(refuse=0.3), **WIDE, unanswered="both"),
    "excluded": lambda: run(ScriptedModel(refuse=0.3), oracle=Consistency(), **WIDE),
    "repeat_probes": lambda: run(**WIDE, repeat_probes=3),
    "severities and filters": lambda: run(**WIDE, **SOME),
    "captions": lambda: avtt.Audit(caption_space(), faulty(), budget=20, **WIDE).run(),
}


SLOW = ("classes", "excluded", "repeat_probes", "severities and filters", "captions")


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.slow] if k in SLOW else []) for k in KINDS]
)
def test_results_of_every_kind_are_as_the_schema_says(kind: str) -> None:
    result = KINDS[kind]()
    written = json.dumps(result.to_dict(), allow_nan=False)
    read = ResultFile.model_validate_json(written)
    assert [t.target for t in read.targets] == result.targets["target"].tolist()
    stated = {"captions": read.captions, "repeat_probes": read.repeat_probes}
    assert stated.get(kind, "no section of its own") is not None
    assert set(result.to_dict()) == set(schema()["properties"])


def test_the_published_schema_is_that_of_the_models() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == text(), "python -m tests.helpers.result_file"
    assert schema()["properties"]["schema_version"]["const"] == SCHEMA_VERSION
    assert "additionalProperties" not in text(), "later versions may add fields"
    for part in (schema(), *schema()["$defs"].values()):
        assert part["description"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("calls", -1), ("schema_version", 2), ("cost", "12"), ("surprise", 1), ("targets", [{}])],
)
def test_what_is_no_result_is_refused(field: str, value: Any) -> None:
    fields = {**run().to_dict(), field: value}
    with pytest.raises(ValidationError, match=field):
        ResultFile.model_validate_json(json.dumps(fields))


def test_a_result_of_another_version_does_not_verify(tmp_path: Path) -> None:
    run(**WIDE, journal=tmp_path / "journal.db").save(tmp_path)
    path = tmp_path / "result.json"
    stated = json.loads(path.read_text())
    assert stated["schema_version"] == SCHEMA_VERSION
    path.write_text(json.dumps({**stated, "schema_version": 7}))
    with pytest.raises(JournalError, match="schema_version: the journal comes to 1, the file says"):
        check(tmp_path)
