"""Questions of a space as a task of Inspect, judged by the space's oracle.

The questions are a fixed sample, drawn by the uniform proposal; nothing is adaptive, and Inspect
asks, counts and pays. Needs inspect-ai (the extra ``inspect``).
"""

from typing import TYPE_CHECKING, Any

from ...engine.judge import Judge
from ...errors import InputError
from ...models.network.http import Encoding
from ...models.network.inspect_model import messages, value_of
from ...models.network.prompt_templates import TEMPLATES, Template
from ...space import QuestionSpace
from ...types import Answer, Prompt, Sample
from ...utils.importing import needed
from ...utils.random_streams import generator

if TYPE_CHECKING:
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset
    from inspect_ai.scorer import Score, Scorer, Target
    from inspect_ai.solver import TaskState

ZERO_SHOT = TEMPLATES["zero-shot"]


def inspect_task(
    space: QuestionSpace,
    *,
    questions: int = 200,
    seed: int = 0,
    template: Template = ZERO_SHOT,
    encoding: Encoding | None = None,
    name: str | None = None,
) -> "Task":
    """A task of ``inspect_dataset`` and ``inspect_scorer``: each question is one call.

    Raises InputError as these do.
    """
    _check(space)
    from inspect_ai import Task
    from inspect_ai.solver import generate

    asked = inspect_dataset(
        space, questions=questions, seed=seed, template=template, encoding=encoding
    )
    return Task(
        dataset=asked,
        solver=generate(),
        scorer=inspect_scorer(space, template),
        name=name or space.dataset.name,
    )


def inspect_dataset(
    space: QuestionSpace,
    *,
    questions: int = 200,
    seed: int = 0,
    template: Template = ZERO_SHOT,
    encoding: Encoding | None = None,
) -> "MemoryDataset":
    """So many of the space's questions, or all where there are fewer, each as likely as any other.

    They stand in the order drawn, so that the first k of them are such a sample, too. An Inspect
    sample has the messages, with the follow-up image as a data URL; the target in words; the
    question's number as id; and sample, relation, severity, concept and the image's own metadata.
    Raises InputError where inspect-ai is missing, for fewer than 1 question, and for an oracle
    whose verdict on a question takes more than its own answer.
    """
    _check(space)
    from inspect_ai.dataset import MemoryDataset

    if questions < 1:
        raise InputError(f"questions: expected 1 or more, got {questions}")
    judge, rng = Judge(space, "one"), generator(seed, "inspect task")
    ranks = rng.choice(space.size, min(questions, space.size), replace=False)
    encoding = encoding or Encoding()
    made = [_sample(judge, number, template, encoding) for number in space.nth(ranks).tolist()]
    return MemoryDataset(made, name=space.dataset.name)


def inspect_scorer(space: QuestionSpace, template: Template = ZERO_SHOT) -> "Scorer":
    """The loss in [0, 1] by the space's oracle, with its mean in all and per relation.

    P(yes) comes from log-probabilities where the output has them. A question that is not answered
    has the oracle's loss for that; one that turns out not to count is not scored. Raises InputError
    as ``inspect_dataset`` does.
    """
    _check(space)
    from inspect_ai.scorer import grouped, mean, scorer, stderr

    judge = Judge(space, "one")

    def loss() -> "Scorer":
        async def score(state: "TaskState", target: "Target") -> "Score":
            return _score(judge, int(state.sample_id), state.output, template)

        return score

    made: Any = scorer(metrics=[mean(), stderr(), grouped(mean(), "relation", all=False)])(loss)
    return made()


def _check(space: QuestionSpace) -> None:
    """Raises InputError where a question's verdict takes more than its own answer."""
    with needed("inspect", "Inspect needs inspect-ai"):
        import inspect_ai  # noqa: F401
    if space.oracle.needs_source:
        raise InputError(
            "inspect: expected an oracle that judges each answer by itself, got "
            f"{type(space.oracle.original).__name__}, which compares it with that about the source "
            "image; 'avtt audit' asks about both"
        )


def _sample(judge: Judge, number: int, template: Template, encoding: Encoding) -> Any:
    from inspect_ai.dataset import Sample as InspectSample

    prompt, source = judge.prompt(number), judge.source(number)
    about = {
        "sample": prompt.sample_id,
        "relation": prompt.relation,
        "severity": prompt.severity,
        "concept": judge.space.question(number).concept,
    }
    made = InspectSample(
        input=messages(prompt, template, encoding),
        target=_target(prompt, source, judge.expected(number)),
        id=str(number),
        metadata={**{name: str(value) for name, value in source.metadata.items()}, **about},
    )
    judge.forget(number)
    return made


def _target(prompt: Prompt, source: Sample, expected: Any) -> list[str]:
    """What is right, in the words in which the model answers: any of these."""
    if prompt.asks and prompt.asks[0].text:
        return list(source.answers.get(prompt.concepts[0], ()))
    return ["Yes" if expected else "No"]


def _score(judge: Judge, number: int, output: Any, template: Template) -> "Score":
    from inspect_ai.scorer import Score

    if not output.choices:
        return Score.unscored(reason=output.error or "no choice")
    said = output.completion
    value = value_of(output, judge.prompt(number), template)
    (row,) = judge.judged(number, Answer((value,)))
    judge.forget(number)
    if row.loss is None or row.excluded:
        return Score.unscored(reason=row.unanswered or "not judged", answer=said)
    told = {"p_yes": row.answer} if row.answer is not None else {}
    return Score(value=row.loss, answer=said, explanation=row.unanswered, metadata=told)
