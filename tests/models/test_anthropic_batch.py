"""Anthropic's message batches on loopback: what is sent, and how results are read."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from adaptive_vtt.errors import ModelError
from adaptive_vtt.journal.facts import BatchFacts
from adaptive_vtt.models import AnthropicBatch, Polling, Prices, Retries
from adaptive_vtt.models.network.batches import Unkept
from adaptive_vtt.types import Answer, Unanswered
from tests.helpers.batch_service import MessageBatches
from tests.helpers.loopback import serving
from tests.models.test_openai_chat import ASK, ONE, TWO

NOW = 2_000_000_000
USED, WORST = (300 * 2 + 20) / 200, (1000 * 2 + 50) / 200
"""What a reply costs by its tokens, and at most, at half the prices."""


def used(**probabilities: float) -> dict[str, Any]:
    """A message that uses the tool it was given."""
    tool = {"type": "tool_use", "id": "t", "name": "give_probability", "input": probabilities}
    return message("", content=[{"type": "text", "text": "Let me see."}, tool])


def message(text: str, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 250, "cache_read_input_tokens": 50, "output_tokens": 20}
    told = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": usage}
    return {"type": "succeeded", "message": {**told, **more}}


@contextmanager
def asked(result: Any, **options: Any) -> Iterator[tuple[AnthropicBatch, MessageBatches]]:
    async def no_wait(_: float) -> None:
        pass

    service = MessageBatches(lambda params: result)
    given: dict[str, Any] = {
        "prices": Prices(input=2.0, output=1.0, tokens=100),
        "max_input_tokens": 1000,
        "max_tokens": 50,
        "polling": Polling(0.001),
        "sleep": no_wait,
        "now": lambda: NOW,
        "retries": Retries(times=1, timeout=10.0, give_up_after=3),
        "yes_from": "stated",
        **options,
    }
    with serving(service) as url, closing(AnthropicBatch("claude", base_url=url, **given)) as model:
        yield model, service


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ('{"probability": 0.25}', "stated", 0.25),
        ('I would say:\n```json\n{"probability": 0.25}\n```', "stated", 0.25),
        ("No.", "stated", 0.0),
        ("Yes", "words", 1.0),
    ],
)
def test_a_probability_is_stated_or_follows_from_words(text: str, options: Any, said: float):
    with asked(message(text), yes_from=options) as (model, service):
        assert model.ask([ONE, ONE]) == [Answer((said,), USED)] * 2
    params = service.batches[0]["requests"][0]["params"]
    image, *words = params["messages"][0]["content"]
    assert (params["model"], params["max_tokens"]) == ("claude", 50)
    assert (image["type"], image["source"]["media_type"]) == ("image", "image/png")
    assert ("probability" in words[-1]["text"]) == (options == "stated")
    assert len(service.batches) == 1


def test_questions_in_words_are_answered_in_words():
    with asked(message(" A ")) as (model, service):
        assert model.ask([ASK]) == [Answer(("A",), USED)]
    assert "probability" not in json.dumps(service.batches[0]["requests"])


def test_all_of_an_image_is_asked_in_one_list():
    with asked(used(**{"1": 0.1, "2": 0.9}), answers="all", yes_from="auto") as (model, _):
        assert model.ask([TWO]) == [Answer((0.1, 0.9), USED)]


@pytest.mark.parametrize(
    ("result", "reason", "cost", "batches"),
    [
        ({"type": "expired"}, "batch expired", 0.0, 2),
        ({"type": "canceled"}, "batch cancelled", 0.0, 2),
        ({"type": "errored", "error": {"error": {"type": "api_error"}}}, "batch error", 0.0, 2),
        ({"type": "errored", "error": None}, "batch error", 0.0, 2),
        ({"type": "unheard of"}, "malformed reply", 2 * WORST, 2),
        ({"type": "succeeded", "message": {"content": None}}, "malformed reply", 2 * WORST, 2),
        (None, "malformed reply", 2 * WORST, 2),
        (message("", content=[{"type": "text", "text": 3}]), "malformed reply", 2 * USED, 2),
        (message("No.", usage={"input_tokens": "9"}), None, WORST, 1),
        (message("", stop_reason="refusal"), "refused: the model declined", USED, 1),
    ],
)
def test_what_is_no_answer_is_tried_again_and_paid_as_it_may_be_billed(
    result: Any, reason: str | None, cost: float, batches: int
):
    with asked(result) as (model, service):
        said = model.ask([ONE])[0]
    assert said.cost == pytest.approx(cost)
    assert (said.reason if isinstance(said, Unanswered) else None) == reason
    assert len(service.batches) == batches


def test_a_wrong_request_ends_the_audit_with_the_reason():
    wrong = {"type": "invalid_request_error", "message": "max_tokens: too many"}
    with (
        asked({"type": "errored", "error": {"error": wrong}}) as (model, _),
        pytest.raises(ModelError, match="invalid_request_error: max_tokens: too many"),
    ):
        model.ask([ONE])


def resumed(model: AnthropicBatch, service: MessageBatches) -> tuple[Any, str]:
    """What is said where the batch's id was never heard, and the name of the batch at last."""
    requests = [{"custom_id": "k-1_7", "params": {}}]
    service.create([{"custom_id": "x_7", "params": {}}])
    service.create(requests)
    record = Unkept()
    record.write([BatchFacts(key="k-1", calls=(7,), form="stated", at=NOW)])
    said = model.ask_batch({7: ONE}, record)[7]
    return said, str(record.read()[-1].id)


def test_a_batch_whose_id_was_never_heard_is_told_by_its_results():
    with asked(message("No.")) as (model, service):
        said, name = resumed(model, service)
    assert (said, name) == (Answer((0.0,), USED), "msgbatch_1")
    assert len(service.batches) == 2


def test_while_one_that_may_be_it_is_under_way_nothing_is_submitted():
    with asked(message("No.")) as (model, service):
        service.status = "in_progress"
        with pytest.raises(ModelError, match="looking for a batch failed: batches under way"):
            resumed(model, service)
    assert len(service.batches) == 2


def test_one_that_is_not_there_is_submitted_and_one_that_cannot_be_found_is_lost():
    record = Unkept()
    intent = BatchFacts(key="k-1", calls=(7,), form="stated", at=NOW)
    with asked(message("No.")) as (model, service):
        record.write([intent])
        assert model.ask_batch({7: ONE}, record)[7] == Answer((0.0,), USED + WORST)
        service.instead["GET /v1/messages/batches?"] = (404, {}, b"{}")
        record.write([intent])
        assert model.ask_batch({7: ONE}, record)[7] == Answer((0.0,), USED + WORST)


def test_requests_go_to_the_address_that_was_given_and_keys_are_never_shown():
    with asked(message("No.")) as (model, service):  # its results_url leads elsewhere
        assert model.ask([ONE]) == [Answer((0.0,), USED)]
        service.instead["POST"] = (401, {}, b'{"error": {"message": "sk-ant-secret is wrong"}}')
        with pytest.raises(ModelError, match=r"\[key\] is wrong"):
            model.ask([ONE])


@pytest.mark.parametrize("gone", [(404, {}, b"{}"), (410, {}, b"{}"), (200, {}, b"x" * 300_000)])
def test_a_foreign_batch_without_results_that_can_be_read_is_passed_over(gone: Any):
    with asked(message("No."), max_file_bytes=200_000) as (model, service):
        service.create([{"custom_id": "k-1_7", "params": {}}])
        service.create([{"custom_id": "x_7", "params": {}}])  # the newest, looked at first
        service.instead["GET /v1/messages/batches/msgbatch_1/results"] = gone
        record = Unkept()
        record.write([BatchFacts(key="k-1", calls=(7,), form="stated", at=NOW)])
        assert model.ask_batch({7: ONE}, record)[7] == Answer((0.0,), USED)
        assert record.read()[-1].id == "msgbatch_0"
    assert len(service.batches) == 2


def test_a_wrong_address_is_told_at_once():
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    url = "http://127.0.0.1:9"
    with (
        closing(AnthropicBatch("claude", base_url=url, sleep=sleep)) as model,
        pytest.raises(ModelError, match="submitting a batch failed: unreachable"),
    ):
        model.ask([ONE])
    assert sum(slept) == 0
