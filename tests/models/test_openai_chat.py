"""Chat models: what is sent through the openai library, and how replies are read."""

import base64
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import cv2
import numpy as np
import pytest

from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.models import (
    Answer,
    Encoding,
    Limits,
    OpenAIChat,
    Prices,
    Prompt,
    Retries,
    Unanswered,
)
from adaptive_vtt.models.checking import checked
from adaptive_vtt.models.network.prompt_templates import Template
from adaptive_vtt.models.network.shapes import stated_in
from adaptive_vtt.types import Ask
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.left_open import left, opened
from tests.helpers.loopback import Replies, Said, serving

IMAGE = generator(0, "chat").integers(0, 256, (8, 6, 3), dtype=np.uint8)
ONE = Prompt(IMAGE, ("cyst",), "a", "identity", 0)
TWO = Prompt(IMAGE, ("drusen", "cyst"), "a", "identity", 0)
ASK = Prompt(IMAGE, ("organ",), "a", "identity", 0, (Ask("Which organ?", ("Colon", "Stomach")),))
USAGE = {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320}


def completion(text: str | None, **choice: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, **choice.pop("message", {})}
    one = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": None, **choice}
    about = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
    return {**about, "choices": [one], "usage": USAGE}


def token(text: str, **alternatives: float) -> dict[str, Any]:
    """A token with probabilities: token(" Yes", Yes=0.6, no=0.2)."""
    listed = [{"token": t, "logprob": math.log(p), "bytes": None} for t, p in alternatives.items()]
    first = listed[0]["logprob"] if listed else 0.0
    return {"token": text, "logprob": first, "bytes": None, "top_logprobs": listed}


Seen = list[dict[str, Any]]


def asked(
    reply: dict[str, Any] | Callable[[dict[str, Any]], Any], prompt: Prompt, **options: Any
) -> tuple[Answer | Unanswered, Seen, OpenAIChat]:
    """What a server that replies so is understood to say, and the requests it saw."""
    server = Replies(reply)
    with serving(server) as url, OpenAIChat("m", base_url=f"{url}/v1", **options) as model:
        return checked(model, [prompt])[0], server.saw, model


def test_image_and_question_are_sent() -> None:
    template = Template(
        "t", system="You are brief.", yes_no="Yes or No?", ask_concept="A {concept}?"
    )
    answer, seen, model = asked(
        completion("No."),
        ONE,
        template=template,
        yes_from="words",
        max_tokens=9,
        detail="low",
        options={"seed": 5},
    )
    assert answer == Answer((0.0,))
    request = seen[0]
    assert {k: request[k] for k in ("model", "max_tokens", "seed")} == {
        "model": "m",
        "max_tokens": 9,
        "seed": 5,
    }
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


def test_images_may_go_as_jpeg() -> None:
    _, (request, *_), _ = asked(completion("Yes"), ONE, encoding=Encoding("jpeg"))
    url = request["messages"][0]["content"][0]["image_url"]["url"]
    assert url.startswith("data:image/jpeg;base64,/9j/")


def test_p_yes_comes_from_log_probabilities_where_there_are_any() -> None:
    logprobs = {"content": [token("Yes", Yes=0.6, No=0.2, maybe=0.2)], "refusal": None}
    answer, seen, model = asked(completion("Yes", logprobs=logprobs), ONE)
    assert answer == Answer((pytest.approx(0.75),))
    assert (seen[0]["logprobs"], seen[0]["top_logprobs"]) == (True, 20)
    assert model.statistics()["yes_from"] == "logprobs"


def test_a_structured_reply_states_probabilities() -> None:
    reply = completion('{"1": 0.25, "2": 7}')
    answer, seen, _ = asked(reply, TWO, answers="all", yes_from="structured")
    why = "no answer: expected a probability from 0 to 1, got 7"
    assert answer == Answer((0.25, Unanswered(why)))
    schema = seen[0]["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"]["required"] == ["1", "2"]


def test_all_questions_of_an_image_are_answered_by_number() -> None:
    asks = (Ask("Which organ?"), Ask("How many?"), Ask("Colour?"))
    prompt = Prompt(IMAGE, ("organ", "count", "colour"), "a", "identity", 0, asks)
    answer, seen, _ = asked(completion("1: Colon\n3: pink, red"), prompt, answers="all")
    assert isinstance(answer, Answer)
    assert (answer.values[0], answer.values[2]) == ("Colon", "pink, red")
    assert isinstance(answer.values[1], Unanswered)
    assert "logprobs" not in seen[0]


def test_a_question_in_words_gets_the_words() -> None:
    answer, seen, _ = asked(completion(" B. Stomach "), ASK, prices=Prices(input=1.0, output=2.0))
    assert answer == Answer(("B. Stomach",), pytest.approx(340e-6))
    assert "B. Stomach" in seen[0]["messages"][0]["content"][1]["text"]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (completion(None, message={"refusal": "I won't."}), "refused: I won't."),
        ((400, {"error": {"code": "content_filter"}}), "refused: the server's content filter"),
    ],
)
def test_refusals_are_recognised(reply: Any, reason: str) -> None:
    answer, _, _ = asked(lambda request: reply, ASK, prices=Prices(per_call=0.0))
    assert answer == Unanswered(reason)


def test_an_empty_account_ends_the_audit_though_it_comes_as_too_many_requests() -> None:
    spent = 429, {"error": {"code": "insufficient_quota"}}
    with pytest.raises(ModelError, match=r"'m' at 127.* http 429: .*insufficient_quota"):
        asked(lambda request: spent, ONE)


def test_a_model_that_is_dropped_leaves_nothing_open() -> None:
    """``conftest.nothing_left_open`` looks; here it is known to have been open before."""
    good: Said = (200, {}, json.dumps(completion("Yes")).encode())
    with serving(lambda *_: good) as url:
        before = opened()
        model = OpenAIChat("m", base_url=url, yes_from="words")
        checked(model, [ONE] * 4)
        assert any("thread 'endpoint m'" in one for one in opened() - before)
        del model
        assert left(before) == []
        with OpenAIChat("m", base_url=url, yes_from="words") as model:
            checked(model, [ONE])
        assert not any("thread 'endpoint m'" in one for one in opened() - before)
        assert left(before) == []  # the server's own threads take a moment


def test_a_refusal_that_counts_tokens_is_paid_for() -> None:
    filtered = {"error": {"code": "content_filter", "message": "no"}, "usage": USAGE}
    busy = {"error": {"message": "slow down"}, "usage": USAGE}
    prices = Prices(input=1.0, output=1.0, tokens=1)
    options: dict[str, Any] = {"prices": prices, "retries": Retries(times=0), "yes_from": "words"}
    for status, reply in ((400, filtered), (429, busy)):
        answer, _, _ = asked(lambda request, r=reply, s=status: (s, r), ONE, **options)
        assert (answer.cost, answer.unconfirmed) == (320.0, 0.0)
    del filtered["usage"]
    answer, _, _ = asked(lambda request: (400, filtered), ONE, **options)
    assert answer.cost == 0.0
    answer, _, _ = asked(lambda request: (400, filtered), ONE, **options, failed_attempts="all")
    assert answer.cost == answer.unconfirmed == 4096 + 512


def test_a_refusal_that_counts_tokens_counts_for_a_limit_per_minute() -> None:
    filtered = {"error": {"code": "content_filter", "message": "no"}, "usage": USAGE}
    now = [0.0]

    async def sleep(seconds: float) -> None:
        now[0] += seconds

    options: dict[str, Any] = {"clock": lambda: now[0], "sleep": sleep, "yes_from": "words"}
    most = 4096 + 512  # tokens of a call, which are reserved before each
    limits = Limits(tokens_per_minute=most)
    with (
        serving(lambda *_: (400, {}, json.dumps(filtered).encode())) as url,
        OpenAIChat("m", base_url=url, limits=limits, **options) as model,
    ):
        checked(model, [ONE])
        checked(model, [ONE])
    assert now[0] == pytest.approx(320 / most * 60)


def test_the_key_of_openai_is_sent_to_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-others")
    seen: list[str] = []

    def answer(path: str, headers: Mapping[str, str], body: bytes) -> Said:
        seen.append(headers["authorization"])
        return 200, {}, json.dumps(completion("Yes")).encode()

    with serving(answer) as url:
        model = OpenAIChat("m", base_url=url, yes_from="words")
        model.ask([ONE])
        model.close()
    assert seen == ["Bearer none"]


def test_log_probabilities_need_one_question_per_call() -> None:
    with pytest.raises(InputError, match="'logprobs' needs one question per call"):
        OpenAIChat("m", base_url="http://a", answers="all", yes_from="logprobs")


# -- reading replies -----------------------------------------------------------------------


@pytest.mark.parametrize("text", ['{"p": "high"}', '{"p": 1.5}', '{"p": null}', '{"p": "120 %"}'])
def test_stated_probabilities_that_are_none_are_no_answer(text: str) -> None:
    (value,) = stated_in(text, ["p"]) or (0.0,)
    assert isinstance(value, Unanswered)
    assert value.reason.startswith("no answer")


@pytest.mark.parametrize("number", ["0.85", '"0.85"', '"85 %"', '"85%"', '"0,85"', '"85 percent"'])
def test_a_stated_probability_may_be_text_or_per_cent(number: str) -> None:
    assert stated_in(f'{{"p": {number}}}', ["p"]) == (0.85,)


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
        (None, {"message": THOUGHT}, "only reasoning"),
        ("", {"message": THOUGHT, "finish_reason": "length"}, "cut off at max_tokens = 512; raise"),
        ("Yes, but then again no", {"finish_reason": "length"}, 1.0),
        ("Let me see. It may be yes", {"finish_reason": "length"}, "cut off at max_tokens = 512"),
        ("", {"finish_reason": "content_filter"}, "content filter"),
        ("", {}, "empty"),
        ([{"type": "refusal", "refusal": "I will not"}], {}, "refused: I will not"),
    ],
)
def test_every_shape_of_a_reply_has_a_reading_or_a_reason(
    content: Any, fields: Any, value: Any
) -> None:
    answer, _, _ = asked(completion(content, **fields), ONE, yes_from="words")
    told = answer.values[0] if isinstance(answer, Answer) else answer
    if isinstance(value, float):
        assert told == value
    else:
        assert isinstance(told, Unanswered)
        assert value in told.reason


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"code": 429, "message": "x"}, 429), ({"message": "overloaded"}, 503),
        ({"code": "rate_limit_exceeded"}, 429), ("what happened?", 500),
    ],
)  # fmt: skip
def test_an_error_within_a_reply_is_the_status_that_it_names(error: Any, status: int) -> None:
    replies = [{"choices": [{"error": error, "message": {"content": ""}}]}, {"error": error}]
    options: dict[str, Any] = {"retries": Retries(times=2, first_wait=0.001), "yes_from": "words"}
    options["prices"] = Prices(per_call=1.0)
    said = [*replies, completion("Yes")]
    answer, _, model = asked(lambda request: said.pop(0), ONE, **options)
    assert answer == Answer((1.0,), 1.0 if status == 429 else 3.0)
    assert model.statistics()["failures"] == {f"http {status}": 2}


def test_the_last_of_what_is_stated_counts_and_what_is_none_does_not() -> None:
    assert stated_in("[[[{" * 9999, ["p"]) is stated_in('{"q": 0.5}', ["p"]) is None
    assert stated_in('{"p": 0.1}, or rather\n```json\n{"p": 0.4}\n```', ["p"]) == (0.4,)
