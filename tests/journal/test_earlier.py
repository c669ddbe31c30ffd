"""A journal as of an earlier head comes to what it came to then."""

from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import Audit
from adaptive_vtt.journal import as_of
from adaptive_vtt.oracles.judge_models import JudgeModel
from adaptive_vtt.results.result import summarise
from adaptive_vtt.testing import ScriptedModel
from adaptive_vtt.types import JsonObject
from tests.helpers.judged import Reader, audit
from tests.helpers.source_spaces import space


def judged(path: Path) -> Audit:
    """A judge is asked of some replies."""
    return audit(JudgeModel(Reader()), budget=12, journal=path)


def consistent(path: Path) -> Audit:
    """Source images are asked about, too."""
    given: dict[str, Any] = {"half_width": 0.1, "targets": ["overall"], "budget": 12, "seed": 3}
    return Audit(space(), ScriptedModel(refuse=0.2), journal=path, **given)


@pytest.mark.parametrize("begin", [judged, consistent])
def test_it_comes_to_the_result_of_then(begin: Any, tmp_path: Path) -> None:
    then: list[JsonObject] = []
    with begin(tmp_path / "journal.db") as begun:
        begun.run(lambda step: then.append(summarise(begun.journal).to_dict()))
        assert len({told["journal_head"] for told in then}) > 5
        for told in then:
            earlier = as_of(begun.journal, told["journal_head"])
            assert earlier is not None
            assert {**summarise(earlier).to_dict(), "journal_head": None} == {
                **told,
                "journal_head": None,
            }
        assert begun.journal.judging() or begun.journal.sources()


def test_a_head_that_it_never_had_is_none_of_its_moments(tmp_path: Path) -> None:
    with consistent(tmp_path / "journal.db") as begun:
        assert as_of(begun.journal, "0" * 32) is None
