"""What distinguishes an audit from how EndoBench's published figures came about, in words.

EndoBench (2025), section 4.1 and appendix B.2: zero-shot, one question per prompt in words that it
prints, options in the order of the file, unchanged images, the reply's letter matched exactly, and,
where medical models gave none, Qwen2.5-VL-72B as judge. It states no temperature.
"""

from collections.abc import Iterator

from ...datasets.vqa.taxonomy import TASKS
from ...journal.facts import Facts
from ...journal.protocol_facts import ProtocolFacts
from ...models.network.prompt_templates import TEMPLATES
from ...types import IDENTITY

TEMPLATE = "endobench"
SHOWN = 3
"""Relations that are named."""


def differences(facts: Facts) -> list[str]:
    """A sentence each; [] where the audit asked as the published models were asked."""
    return [*_of_questions(facts), *_of_prompt(facts), *_of_reading(facts)]


def temperature(facts: Facts) -> str:
    """What is known of it, since the paper leaves it open."""
    at = facts.protocol.temperature
    here = "is not known" if at is None else f"was {at:g}"
    return f"EndoBench does not state at which temperature its models replied; here it {here}."


def _of_questions(facts: Facts) -> Iterator[str]:
    every = sum(task.questions for task in TASKS)
    if facts.space.samples != every:
        yield (
            f"The questions: {facts.space.samples:,} here (dataset {facts.space.dataset!r}), which "
            f"may or may not be among EndoBench's {every:,}."
        )
    changed = [relation for relation in facts.space.relations if relation != IDENTITY]
    if changed:
        more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
        which = "also" if len(changed) < len(facts.space.relations) else "only"
        yield (
            f"The images: unchanged there; the rates here are {which} of changed ones "
            f"({', '.join(changed[:SHOWN])}{more})."
        )


def _of_prompt(facts: Facts) -> Iterator[str]:
    told = facts.protocol
    if told.template_hash != TEMPLATES[TEMPLATE].hash:
        yield (
            f"The prompt: EndoBench's own words there, zero-shot, which the template {TEMPLATE!r} "
            f"has; {_used(told)} here."
        )
    if told.per_call == "all":
        yield "The calls: one question each there, all questions of an image together here."


def _used(told: ProtocolFacts) -> str:
    """Which template, in words."""
    if told.template_hash is None:
        return "in which words is not known"
    if told.template is None:
        return f"a template with the hash {told.template_hash}"
    return f"the template {told.template!r}"


def _of_reading(facts: Facts) -> Iterator[str]:
    told, oracle = facts.protocol, facts.begun_with.get("oracle")
    if told.regime is None:
        yield "The replies: letters in words there, numbers here."
        return
    if told.regime != "exact" or told.judge is not None:
        judge = "a judge model" if told.judge is None else f"the judge {told.judge!r}"
        yield (
            "The replies: read by their letter there, and, of medical models that gave none, by a "
            f"judge (Qwen2.5-VL-72B); here {judge} helps to read them ({told.regime})."
        )
    if not (isinstance(oracle, dict) and oracle.get("faithful")):
        yield (
            "The rule that finds the letter: EndoBench's public one there (faithful = true in "
            "[oracle] takes it); ours here, which minds how an answer is put."
        )
