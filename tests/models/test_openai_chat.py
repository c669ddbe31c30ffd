"""Chat models: what is sent through the openai library, and how replies are read."""

import base64
import json
import math

import cv2
import numpy as np
import pytest

from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.models import OpenAIChat, Prices, Prompt, Retries
from adaptive_vtt.models.checking import checked
from adaptive_vtt.models.network.prompt_templates import Template
from adaptive_vtt.models.network.shapes import stated_in
from adaptive_vtt.types import Answer, Ask, Unanswered
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.left_open import left, opened
from tests.helpers.loopback import Replies, serving

IMAGE = generator(0, "chat").integers(0, 256, (8, 6, 3), dtype=np.uint8)
ONE = Prompt(IMAGE, ("cyst",), "a", "identity", 0)
TWO = Prompt(IMAGE, ("drusen", "cyst"), "a", "identity", 0)
ASK = Prompt(IMAGE, ("organ",), "a", "identity", 0, (Ask("Which organ?", ("Colon", "Stomach")),))
USAGE = {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320}
FILTERED = {"error": {"code": "content_filter", "message": "no"}}
MOST = 4096 + 512
"""Tokens of one attempt, at most."""


def completion(text, **choice):
    message = {"role": "assistant", "content": text, **choice.pop("message", {})}
    one = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": None, **choice}
    about = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
    return {**about, "choices": [one], "usage": USAGE}


def token(text, **alternatives):
    """A token with probabilities: token(" Yes", Yes=0.6, no=0.2)."""
    listed = [{"token": t, "logprob": math.log(p), "bytes": None} for t, p in alternatives.items()]
    first = listed[0]["logprob"] if listed else 0.0
    return {"token": text, "logprob": first, "bytes": None, "top_logprobs": listed}


def asked(reply, prompt, **options):
    """The answer of a model whose server has this reply, the requests it saw, and the model."""
    server = Replies(reply)
    with serving(server) as url, OpenAIChat("m", base_url=f"{url}/v1", **options) as model:
        return checked(model, [prompt])[0], server.saw, model


def test_image_and_question_are_sent():
    template = Template(
        "t", system="You are brief.", yes_no="Yes or No?", ask_concept="A {concept}?"
    )
    options = {"max_tokens": 9, "detail": "low", "options": {"seed": 5}}
    answer, (request, *_), model = asked(
        completion("No."), ONE, template=template, yes_from="words", **options
    )
    assert answer == Answer((0.0,))
    assert (request["model"], request["max_tokens"], request["seed"]) == ("m", 9, 5)
    assert not {"temperature", "logprobs", "response_format"} & set(request)
    system, user = request["messages"]
    assert system == {"role": "system", "content": "You are brief."}
    picture, text = user["content"]
    assert text["text"] == "Question: A cyst?\nYes or No?"
    assert picture["image_url"]["detail"] == "low"
    kind, data = picture["image_url"]["url"].split(",")
    assert kind == "data:image/png;base64"
    pixels = cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_UNCHANGED)
    assert np.array_equal(pixels[:, :, ::-1], IMAGE)
    assert model.statistics()["yes_from"] == "words"


def test_p_yes_comes_from_log_probabilities_where_there_are_any():
    logprobs = {"content": [token("Yes", Yes=0.6, No=0.2, maybe=0.2)], "refusal": None}
    answer, seen, model = asked(completion("Yes", logprobs=logprobs), ONE)
    assert answer == Answer((pytest.approx(0.75),))
    assert (seen[0]["logprobs"], seen[0]["top_logprobs"]) == (True, 20)
    assert model.statistics()["yes_from"] == "logprobs"


def test_a_structured_reply_states_probabilities():
    reply = completion('{"1": 0.25, "2": 7}')
    answer, seen, _ = asked(reply, TWO, answers="all", yes_from="structured")
    why = "no answer: expected a probability from 0 to 1, got 7"
    assert answer == Answer((0.25, Unanswered(why)))
    schema = seen[0]["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"]["required"] == ["1", "2"]


def test_all_questions_of_an_image_are_answered_by_number():
    asks = (Ask("Which organ?"), Ask("How many?"), Ask("Colour?"))
    prompt = Prompt(IMAGE, ("organ", "count", "colour"), "a", "identity", 0, asks)
    answer, seen, _ = asked(completion("1: Colon\n3: pink, red"), prompt, answers="all")
    assert (answer.values[0], answer.values[2]) == ("Colon", "pink, red")
    assert isinstance(answer.values[1], Unanswered)
    assert "logprobs" not in seen[0]


def test_a_question_in_words_gets_the_words():
    answer, seen, _ = asked(completion(" B. Stomach "), ASK, prices=Prices(input=1.0, output=2.0))
    assert answer == Answer(("B. Stomach",), pytest.approx(340e-6))
    assert "B. Stomach" in seen[0]["messages"][0]["content"][1]["text"]


def test_an_empty_account_ends_the_audit_though_it_comes_as_too_many_requests():
    spent = 429, {"error": {"code": "insufficient_quota"}}
    with pytest.raises(ModelError, match=r"'m' at 127.* http 429: .*insufficient_quota"):
        asked(lambda request: spent, ONE)


def test_a_model_that_is_dropped_leaves_nothing_open():
    """``conftest.nothing_left_open`` looks; here it is known to have been open before."""
    with serving(Replies(completion("Yes"))) as url:
        before = opened()
        model = OpenAIChat("m", base_url=url, yes_from="words")
        checked(model, [ONE] * 4)
        assert any("thread 'endpoint m'" in one for one in opened() - before)
        del model
        assert left(before) == []


@pytest.mark.parametrize(
    ("status", "body", "failed", "cost", "unconfirmed"),
    [
        (400, {**FILTERED, "usage": USAGE}, "likely", 320.0, 0.0),
        (429, {"error": {"message": "slow down"}, "usage": USAGE}, "likely", 320.0, 0.0),
        (400, FILTERED, "likely", 0.0, 0.0),
        (400, FILTERED, "all", MOST, MOST),
    ],
)
def test_a_refusal_that_counts_tokens_is_paid_for(status, body, failed, cost, unconfirmed):
    prices = Prices(input=1.0, output=1.0, tokens=1)
    options = {"prices": prices, "retries": Retries(times=0), "failed_attempts": failed}
    answer, _, _ = asked(lambda request: (status, body), ONE, yes_from="words", **options)
    assert answer.reason == (
        "refused: the server's content filter" if status == 400 else "http 429"
    )
    assert (answer.cost, answer.unconfirmed) == (cost, unconfirmed)


def test_the_key_of_openai_is_sent_to_openai_alone(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-others")
    seen = []

    def answer(path, headers, body):
        seen.append(headers["authorization"])
        return 200, {}, json.dumps(completion("Yes")).encode()

    with serving(answer) as url, OpenAIChat("m", base_url=url, yes_from="words") as model:
        model.ask([ONE])
    assert seen == ["Bearer none"]


def test_log_probabilities_need_one_question_per_call():
    with pytest.raises(InputError, match="'logprobs' needs one question per call"):
        OpenAIChat("m", base_url="http://a", answers="all", yes_from="logprobs")


# -- reading replies -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(f'{{"p": {p}}}', 0.85) for p in ("0.85", '"0.85"', '"85 %"', '"0,85"', '"85 percent"')],
        *[(f'{{"p": {p}}}', "no answer") for p in ('"high"', "1.5", "null", '"120 %"')],
        ('{"p": 0.1}, or rather\n```json\n{"p": 0.4}\n```', 0.4),
    ],
)
def test_the_last_stated_probability_counts_as_number_text_or_per_cent(text, value):
    (read,) = stated_in(text, ["p"])
    assert read == value if isinstance(value, float) else read.reason.startswith(value)


def test_a_reply_that_states_no_probability_is_none():
    assert stated_in("[[[{" * 9999, ["p"]) is stated_in('{"q": 0.5}', ["p"]) is None


PARTS = [{"type": "thinking", "thinking": "Yes or no?"}, {"type": "text", "text": "No"}]
CALLED = {"tool_calls": [{"function": {"name": "zoom"}}]}
THOUGHT = {"reasoning_content": "Let me look."}


@pytest.mark.parametrize(
    ("content", "fields", "value"),
    [
        (PARTS, {}, 0.0),
        (["No"], {}, 0.0),
        ({"type": "text", "text": "Yes"}, {}, 1.0),
        (None, {"message": CALLED}, "called a tool"),
        (None, {"message": {"refusal": "I won't."}}, "refused: I won't."),
        (None, {"message": THOUGHT}, "only reasoning"),
        ("", {"message": THOUGHT, "finish_reason": "length"}, "cut off at max_tokens = 512; raise"),
        ("Yes, but then again no", {"finish_reason": "length"}, 1.0),
        ("Let me see. It may be yes", {"finish_reason": "length"}, "cut off at max_tokens = 512"),
        ("", {"finish_reason": "content_filter"}, "content filter"),
        ("", {}, "empty"),
        ([{"type": "refusal", "refusal": "I will not"}], {}, "refused: I will not"),
    ],
)
def test_every_shape_of_a_reply_has_a_reading_or_a_reason(content, fields, value):
    answer, _, _ = asked(completion(content, **fields), ONE, yes_from="words")
    read = answer.values[0] if isinstance(answer, Answer) else answer
    assert read == value if isinstance(value, float) else value in read.reason


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"code": 429, "message": "x"}, 429), ({"message": "overloaded"}, 503),
        ({"code": "rate_limit_exceeded"}, 429), ("what happened?", 500),
    ],
)  # fmt: skip
def test_an_error_within_a_reply_is_the_status_that_it_names(error, status):
    replies = [{"choices": [{"error": error, "message": {"content": ""}}]}, {"error": error}]
    replies.append(completion("Yes"))
    options = {"prices": Prices(per_call=1.0), "retries": Retries(times=2, first_wait=0.001)}
    answer, _, model = asked(lambda request: replies.pop(0), ONE, yes_from="words", **options)
    assert answer == Answer((1.0,), 1.0 if status == 429 else 3.0)
    assert model.statistics()["failures"] == {f"http {status}": 2}
