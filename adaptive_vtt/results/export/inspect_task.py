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
from ...types import Answer
from ...utils.importing import needed
from ...utils.random_streams import generator

if TYPE_CHECKING:
    from inspect_ai import Task
    from inspect_ai.scorer import Score, Scorer, Target
    from inspect_ai.solver import TaskState

ZERO_SHOT = TEMPLATES["zero-shot"]


def inspect_task(
    space: QuestionSpace,
    *,
    questions: int = 200,
    seed: int = 0,
    template: Template = ZERO_SHOT,
    name: str | None = None,
) -> "Task":
    """Return a task of a uniform sample of the space's questions, each of them one call.

    They stand in the order drawn, so that the first k of them are such a sample, too. An Inspect
    sample has the messages, with the follow-up image as a data URL; the target in words; the
    question's number as id; and sample, relation, severity, concept and the image's own metadata.
    The score is the loss in [0, 1] by the space's oracle, with its mean overall and per relation.

    Args:
        space: The questions.
        questions: How many, at most; 1 or more.
        seed: Decides which.
        template: The prompt.
        name: Name of the task; None for that of the dataset.

    Raises:
        InputError: inspect-ai is missing, there is fewer than 1 question, or the oracle's verdict
            on a question takes more than its own answer.
    """
    with needed("inspect", "Inspect needs inspect-ai"):
        from inspect_ai import Task
        from inspect_ai.dataset import MemoryDataset
        from inspect_ai.dataset import Sample as InspectSample
        from inspect_ai.solver import generate

    if space.oracle.needs_source:
        raise InputError(
            "inspect: expected an oracle that judges each answer by itself, got "
            f"{type(space.oracle.original).__name__}, which compares it with that about the source "
            "image; 'avtt audit' asks about both"
        )
    if questions < 1:
        raise InputError(f"questions: expected 1 or more, got {questions}")
    judge, rng, samples = Judge(space, "one"), generator(seed, "inspect task"), []
    ranks = rng.choice(space.size, min(questions, space.size), replace=False)
    for number in space.nth(ranks).tolist():
        prompt, source = judge.prompt(number), judge.source(number)
        # in the words in which the model answers: any of these is right
        target = ["Yes" if judge.expected(number) else "No"]
        if prompt.asks and prompt.asks[0].text:
            target = list(source.answers.get(prompt.concepts[0], ()))
        about = {name: getattr(prompt, name) for name in ("relation", "severity")}
        about |= {"sample": prompt.sample_id, "concept": space.question(number).concept}
        described = {name: str(value) for name, value in source.metadata.items()}
        input, metadata = messages(prompt, template, Encoding()), {**described, **about}
        samples.append(InspectSample(input, target=target, id=str(number), metadata=metadata))
        judge.forget(number)
    dataset = MemoryDataset(samples, name=space.dataset.name)
    scorer, title = _scorer(judge, template), name or space.dataset.name
    return Task(dataset=dataset, solver=generate(), scorer=scorer, name=title)


def _scorer(judge: Judge, template: Template) -> "Scorer":
    """Return a scorer of the loss by the judge's oracle.

    P(yes) comes from log-probabilities where the output has them. A question that is not answered
    has the oracle's loss for that; one that turns out not to count is not scored.
    """
    from inspect_ai.scorer import Score, grouped, mean, scorer, stderr

    def loss() -> "Scorer":
        async def score(state: "TaskState", target: "Target") -> "Score":
            output, number = state.output, int(state.sample_id)
            if not output.choices:
                return Score.unscored(reason=output.error or "no choice")
            value = value_of(output, judge.prompt(number), template)
            (row,) = judge.judged(number, Answer((value,)))
            judge.forget(number)
            reply = {"answer": output.completion}
            if row.loss is None or row.excluded:
                return Score.unscored(reason=row.unanswered or "not judged", **reply)
            metadata = {"p_yes": row.answer} if row.answer is not None else {}
            return Score(value=row.loss, explanation=row.unanswered, metadata=metadata, **reply)

        return score

    made: Any = scorer(metrics=[mean(), stderr(), grouped(mean(), "relation", all=False)])(loss)
    return made()
