"""What a chat model replies: probabilities that it states in JSON, and a value per question."""

from ..types import JsonObject, Prompt, Unanswered, Value
from .network.prompt_templates import Template
from .reply_frames import NO_ANSWER, without_thinking
from .yes_no import yes_or_no

REFUSED = "refused: "
"""Before the words of a server's refusal."""


def words_in(text: str, prompt: Prompt, template: Template) -> tuple[Value, ...]:
    """A reply in words, a value per concept."""
    answer = without_thinking(text)
    if isinstance(answer, Unanswered):
        return (answer,) * len(prompt.concepts)
    parts = template.split(answer, len(prompt.concepts))
    return tuple(value_of(part, prompt, place) for place, part in enumerate(parts))


def in_words(prompt: Prompt) -> bool:
    """Whether its questions are in words, and so are to be answered in words."""
    return any(ask.text for ask in prompt.asks)


def value_of(part: str | Unanswered, prompt: Prompt, place: int) -> Value:
    """Words where the question is in words, else Yes or No as 1.0 or 0.0."""
    if isinstance(part, Unanswered):
        return part
    if prompt.asks and prompt.asks[place].text:
        return part.strip() or Unanswered(NO_ANSWER)
    return yes_or_no(part, prompt.concepts[place])


def schema_of(prompt: Prompt) -> JsonObject:
    """The JSON schema of an object with a probability per concept."""
    names = names_in(prompt)
    return {
        "type": "object",
        "properties": {name: {"type": "number"} for name in names},
        "required": names,
        "additionalProperties": False,
    }


def names_in(prompt: Prompt) -> list[str]:
    """What the probabilities of a prompt's concepts are called in JSON."""
    count = len(prompt.concepts)
    return ["probability"] if count == 1 else [str(i) for i in range(1, count + 1)]
