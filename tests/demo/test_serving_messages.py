"""The demo server's messages and batches of them, asked through Anthropic's own client."""

import base64
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from adaptive_vtt.demo.server import MODEL, REFUSAL, STATISTICS, Behaviour, DemoModel, DemoServer
from adaptive_vtt.types import Image
from adaptive_vtt.utils.image_codec import png
from tests.helpers.served import FRAMES, frame, get

TEXT = "Is there a polyp in this image? Answer Yes or No with no other text."
FAKE = DemoModel(FRAMES, error=0.2, seed=1)
TOOL = {
    "name": "tell",
    "input_schema": {"type": "object", "properties": {"probability": {"type": "number"}}},
}
FORCED = {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "tell"}}


def client_of(server: DemoServer, **arguments: Any) -> Any:
    anthropic = pytest.importorskip("anthropic")
    given = {"api_key": "none", "max_retries": 0, "timeout": 10, **arguments}
    return anthropic.Anthropic(base_url=server.url, **given)


def asking(image: Image, text: str = TEXT, **more: Any) -> dict[str, Any]:
    data = base64.b64encode(png(image)).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    content = [{"type": "image", "source": source}, {"type": "text", "text": text}]
    said = {"model": MODEL, "max_tokens": 50, "messages": [{"role": "user", "content": content}]}
    return {**said, **more}


@pytest.fixture
def server() -> Iterator[DemoServer]:
    with DemoServer(FAKE, Behaviour(latency=0.05)) as running:
        yield running


def test_a_message_is_answered_in_words_or_by_the_tool_that_it_forces(server: DemoServer):
    truth = FAKE.answer(frame(3), "polyp")
    with client_of(server) as client:
        plain = client.messages.create(**asking(frame(3)))
        forced = client.messages.create(**asking(frame(3), **FORCED))
    assert (plain.content[0].text, plain.stop_reason) == (truth.choice, "end_turn")
    assert forced.content[0].input == {"probability": pytest.approx(truth.yes, abs=1e-6)}
    assert forced.stop_reason == "tool_use"
    counts = get(server.url + STATISTICS)
    billed = plain.usage.input_tokens + forced.usage.input_tokens
    assert (counts["answered"], counts["prompt_tokens"]) == (2, billed)


def test_each_mistake_is_the_error_it_is_to_the_client():
    anthropic = pytest.importorskip("anthropic")
    with DemoServer(FAKE, key="planted") as server:
        with client_of(server, api_key="planted") as client:
            with pytest.raises(anthropic.NotFoundError, match="model: gpt"):
                client.messages.create(**asking(frame(0), model="gpt"))
            thinking = {"type": "enabled", "budget_tokens": 1024}
            with pytest.raises(anthropic.BadRequestError, match="Thinking may not be enabled"):
                client.messages.create(**asking(frame(0), thinking=thinking, **FORCED))
        wrong = pytest.raises(anthropic.AuthenticationError, match="API key")
        with client_of(server, api_key="wrong") as client, wrong:
            client.messages.create(**asking(frame(0)))
    with DemoServer(FAKE, Behaviour(limited=1.0, retry_after=7)) as server:
        with client_of(server) as client, pytest.raises(anthropic.RateLimitError) as limited:
            client.messages.create(**asking(frame(0)))
        assert limited.value.response.headers["retry-after"] == "7"
    statuses = set()
    with DemoServer(FAKE, Behaviour(broken=1.0)) as server, client_of(server) as client:
        for number in range(12):
            with pytest.raises(anthropic.APIStatusError) as broken:
                client.messages.create(**asking(frame(number)))
            statuses.add(broken.value.status_code)
    assert 529 in statuses  # how it says that it is overloaded
    assert 503 not in statuses


def test_a_refusal_is_its_own_stop_reason():
    with DemoServer(DemoModel(FRAMES, refusals=1.0)) as server, client_of(server) as client:
        said = client.messages.create(**asking(frame(0), **FORCED))
    assert (said.stop_reason, said.content[0].text) == ("refusal", REFUSAL)


def ended(client: Any, batch: Any) -> Any:
    until = time.monotonic() + 20
    while batch.processing_status != "ended" and time.monotonic() < until:
        time.sleep(0.01)
        batch = client.messages.batches.retrieve(batch.id)
    return batch


def lines(count: int) -> list[Any]:
    asked = [asking(frame(i % 24), TEXT + " " * (i // 24)) for i in range(count)]
    return [{"custom_id": f"q-{i}", "params": params} for i, params in enumerate(asked)]


def test_a_batch_is_answered_as_one_by_one_and_billed_once(server: DemoServer):
    with client_of(server) as client:
        batch = ended(client, client.messages.batches.create(requests=lines(6)))
        found = {one.custom_id: one.result for one in client.messages.batches.results(batch.id)}
        for line in lines(6):
            alone = client.messages.create(**line["params"])
            assert found[line["custom_id"]].message.content[0].text == alone.content[0].text
        assert batch.request_counts.succeeded == 6
        counts = get(server.url + STATISTICS)
        assert (counts["batches"], counts["batched"], counts["answered"]) == (1, 6, 12)
        made = [client.messages.batches.create(requests=lines(1)).id for _ in range(2)]
        page = client.messages.batches.list(limit=2)
        assert ([one.id for one in page.data], page.has_more) == (made[::-1], True)


def whole(exchange: Callable[[], Any]) -> Any:
    """What an exchange gives, at last: some replies are cut."""
    for _ in range(50):
        with suppress(Exception):
            return exchange()
    raise AssertionError("it was never whole")


@pytest.mark.slow
def test_faults_befall_the_requests_of_a_batch_and_what_is_cancelled_was_not_done():
    behaviour = Behaviour(limited=0.15, hung=0.05, truncated=0.15, retry_after=0.0, seed=3)
    with (
        DemoServer(FAKE, behaviour) as server,
        client_of(server, max_retries=9, timeout=0.3) as client,
    ):
        batches = client.messages.batches
        name = whole(lambda: batches.create(requests=lines(40))).id
        batch = whole(lambda: ended(client, batches.retrieve(name)))
        kinds = [one.result.type for one in whole(lambda: [*batches.results(batch.id)])]
    counts = server.statistics
    assert {"succeeded", "errored", "expired"} == set(kinds)
    assert len(kinds) + counts.truncated == 40
    assert (kinds.count("succeeded"), kinds.count("expired")) == (counts.answered, counts.hung)
    assert counts.unseen_prompt_tokens > 0
    with DemoServer(FAKE, Behaviour(latency=60.0)) as server, client_of(server) as client:
        begun = client.messages.batches.create(requests=lines(3))
        client.messages.batches.cancel(begun.id)
        ended_now = client.messages.batches.retrieve(begun.id)
    assert (ended_now.processing_status, ended_now.request_counts.canceled) == ("ended", 3)
    assert server.statistics.answered == 0
