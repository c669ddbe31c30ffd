"""Anthropic's messages one by one, through its own library: what is sent, and how it is read."""

from contextlib import closing
from typing import Any

import pytest

from adaptive_vtt.models import AnthropicMessages, Prices, Retries
from adaptive_vtt.types import Answer, Unanswered
from tests.helpers.loopback import Replies, serving
from tests.models.test_openai_chat import ASK, ONE, TWO

PRICES = Prices(input=2.0, output=1.0, tokens=100)


def message(text, **more):
    usage = {"input_tokens": 250, "cache_read_input_tokens": 50, "output_tokens": 20}
    reply = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": usage}
    return {**reply, **more}


def used(**probabilities):
    """A message that uses the tool it was given."""
    tool = {"type": "tool_use", "id": "t", "name": "give_probability", "input": probabilities}
    return message("", content=[{"type": "text", "text": "Let me see."}, tool])


USED, WORST = (300 * 2 + 20) / 100, (1000 * 2 + 50) / 100
"""What a reply costs by its tokens, and at most."""


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")


def model_at(url, **options):
    slept = options.pop("slept", [])

    async def sleep(seconds):
        slept.append(seconds)

    given: dict[str, Any] = {"prices": PRICES, "max_input_tokens": 1000, "max_tokens": 50}
    given |= {"retries": Retries(times=2, timeout=10.0), "sleep": sleep, **options}
    return AnthropicMessages(given.pop("model", "claude"), base_url=url, **given)


def asked(reply, prompt=ONE, **options):
    """The answer of a model whose server has this reply, the requests it saw, and the model."""
    server = Replies(reply)
    with serving(server) as url, closing(model_at(url, **options)) as model:
        return model.ask([prompt])[0], server.saw, model


def test_a_probability_is_given_to_a_tool_that_has_to_be_used():
    answer, (request,), model = asked(used(probability=0.25))
    assert answer == Answer((0.25,), USED)
    assert request["tool_choice"] == {"type": "tool", "name": request["tools"][0]["name"]}
    schema = request["tools"][0]["input_schema"]
    assert schema["properties"] == {"probability": {"type": "number"}}
    image, words = request["messages"][0]["content"]
    assert (image["source"]["type"], image["source"]["media_type"]) == ("base64", "image/png")
    assert "cyst" in words["text"]
    assert (request["model"], request["max_tokens"]) == ("claude", 50)
    assert model.statistics()["yes_from"] == "structured"


def test_all_of_an_image_in_one_list_and_questions_in_words():
    answer, _, _ = asked(used(**{"1": 0.1, "2": 7}), TWO, answers="all")
    why = "no answer: expected a probability from 0 to 1, got 7"
    assert answer == Answer((0.1, Unanswered(why)), USED)
    answer, (request,), _ = asked(message(" B. Stomach "), ASK)
    assert answer == Answer(("B. Stomach",), USED)
    assert "tools" not in request


def test_a_tool_that_is_refused_or_ignored_gives_place_to_words():
    def thinks(request):
        if "tool_choice" in request:
            error = {"type": "invalid_request_error", "message": "Thinking may not be enabled"}
            return 400, {"type": "error", "error": error}
        return message('I would say {"probability": 0.4}.')

    answer, seen, model = asked(thinks)
    assert (answer, len(seen)) == (Answer((0.4,), USED), 2)  # what was refused cost nothing
    assert model.elicitation()[""].instead == {"structured": "refused"}
    answer, seen, model = asked(message("No."))
    assert (answer, len(seen)) == (Answer((0.0,), 3 * USED), 3)
    assert model.elicitation()[""].instead == {"structured": "missing", "stated": "missing"}


@pytest.mark.parametrize(
    ("fields", "cost"),
    [
        ({"content": None}, USED),
        ({"content": [{"type": "tool_use", "input": {"probability": "high"}}]}, USED),
        ({"usage": {"input_tokens": -3}}, WORST),
        ({"stop_reason": "refusal"}, USED),
    ],
)
def test_what_is_no_answer_is_paid_as_it_may_be_billed(fields, cost):
    answer, seen, _ = asked(message("", **fields))
    value = answer.values[0] if isinstance(answer, Answer) else answer
    assert isinstance(value, Unanswered)
    assert answer.cost == pytest.approx(cost * len(seen))
