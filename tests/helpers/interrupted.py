"""Audits that are interrupted and resumed."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import ModelError
from adaptive_vtt.models import Answer, Prompt, Unanswered
from adaptive_vtt.testing import ScriptedModel


def cut_off(model: Any, last: int, error: BaseException | None = None) -> Any:
    """Make a model raise an error instead of answering more than ``last`` questions."""
    ask = model.ask

    def asked(prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        if len(model.asked) + len(prompts) > last:
            raise error or RuntimeError("power cut")
        return ask(prompts)

    model.ask = asked
    return model


def assert_resumes(
    space: Callable[[], QuestionSpace],
    path: Path,
    last: int,
    answers: Literal["one", "all"],
    options: dict[str, Any],
) -> None:
    """Assert that an audit that is interrupted after ``last`` questions resumes.

    With the journal at ``path`` it must have the result of an undisturbed audit, and ask no
    question twice.
    """
    whole = Audit(space(), ScriptedModel(answers=answers), **options)
    undisturbed = whole.run()
    first, second = (ScriptedModel(answers=answers) for _ in range(2))
    first = cut_off(first, last)
    with Audit(space(), first, journal=path, **options) as audit, suppress(ModelError):
        audit.run()  # to its end, where that comes before the last question
    with Audit(space(), second, journal=path, **options) as audit:
        result = audit.run()
        proposals = [[row.proposal for row in a.journal.draws()] for a in (audit, whole)]
        verify(audit.journal)
    assert proposals[0] == proposals[1]
    assert not set(first.asked) & set(second.asked)
    assert sorted(first.asked + second.asked) == sorted(whole.model.asked)  # type: ignore[attr-defined]
    assert result.calls == len(first.asked) + len(second.asked) == undisturbed.calls
    assert result.targets.equals(undisturbed.targets)
