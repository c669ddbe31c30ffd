"""The demo server's batches, asked through OpenAI's own client."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from adaptive_vtt.demo.server import MODEL, STATISTICS, Behaviour, DemoModel, DemoServer
from tests.helpers.served import FRAMES, client_of, frame, get, messages, post

TEXT = "Is there a polyp in this image? Answer Yes or No with no other text."
FAKE = DemoModel(FRAMES, error=0.2, seed=1)


def lines(count: int) -> list[dict[str, Any]]:
    return [
        {
            "custom_id": f"q-{index}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": MODEL, "messages": messages(frame(index), TEXT)},
        }
        for index in range(count)
    ]


def submitted(client: Any, asked: list[Any]) -> Any:
    data = b"\n".join(json.dumps(line).encode() for line in asked)
    file = client.files.create(file=("asked.jsonl", data), purpose="batch")
    return client.batches.create(
        input_file_id=file.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        metadata={"about": "a test"},
    )


def ended(client: Any, batch: Any) -> Any:
    until = time.monotonic() + 20
    while batch.status == "in_progress" and time.monotonic() < until:
        time.sleep(0.01)
        batch = client.batches.retrieve(batch.id)
    return batch


def results(client: Any, file: str | None) -> dict[str, Any]:
    if file is None:
        return {}
    text = client.files.content(file).text
    return {line["custom_id"]: line for line in map(json.loads, text.splitlines())}


@pytest.fixture
def server() -> Iterator[DemoServer]:
    with DemoServer(FAKE, Behaviour(latency=0.05)) as running:
        yield running


def test_a_batch_is_answered_as_one_by_one_and_billed_once(server: DemoServer):
    asked = lines(6)
    with client_of(server) as client:
        begun = submitted(client, asked)
        assert (begun.status, begun.metadata) == ("in_progress", {"about": "a test"})
        batch = ended(client, begun)
        found = results(client, batch.output_file_id)
        assert (batch.status, batch.error_file_id) == ("completed", None)
        assert (batch.request_counts.completed, batch.request_counts.failed) == (6, 0)
        assert list(found) == [line["custom_id"] for line in asked]
        for line in asked:
            alone = client.chat.completions.create(**line["body"])
            said = found[line["custom_id"]]["response"]["body"]["choices"][0]["message"]
            assert said["content"] == alone.choices[0].message.content
    counts = get(server.url + STATISTICS)
    assert (counts["batches"], counts["batched"], counts["answered"]) == (1, 6, 12)


def test_batches_are_listed_newest_first_page_by_page(server: DemoServer):
    with client_of(server) as client:
        made = [submitted(client, lines(1)).id for _ in range(3)]
        assert [batch.id for batch in client.batches.list(limit=2)] == made[::-1]
        page = client.batches.list(limit=2)
        assert ([one.id for one in page.data], page.has_more) == (made[:0:-1], True)


def test_a_cancelled_batch_has_done_what_it_had_time_for():
    with DemoServer(FAKE, Behaviour(latency=60.0)) as server, client_of(server) as client:
        batch = client.batches.cancel(submitted(client, lines(4)).id)
        assert batch.status == "cancelled"
        undone = results(client, batch.error_file_id)
        assert {line["error"]["code"] for line in undone.values()} == {"batch_cancelled"}
        assert len(undone) == 4
        assert get(server.url + STATISTICS)["answered"] == 0


def test_a_request_that_is_wrong_fails_alone(server: DemoServer):
    asked = lines(3)
    asked[1]["body"]["model"] = "another"
    with client_of(server) as client:
        batch = ended(client, submitted(client, asked))
        failed = results(client, batch.error_file_id)
        assert list(failed) == ["q-1"]
        assert failed["q-1"]["response"]["status_code"] == 404
        assert set(results(client, batch.output_file_id)) == {"q-0", "q-2"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"custom_id": "q-0"}, "line 2: expected a custom_id of its own"),
        ({"body": 3}, "line 2: expected a custom_id of its own, and a body"),
        ({"url": "/v1/embeddings"}, "line 2: expected POST /v1/chat/completions"),
    ],
)
def test_a_file_that_is_wrong_fails_as_a_whole(server: DemoServer, wrong: Any, message: str):
    asked = lines(2)
    asked[1] |= wrong
    with client_of(server) as client:
        batch = submitted(client, asked)
    assert batch.status == "failed"
    assert batch.errors.data[0].message.startswith(message)


@pytest.mark.parametrize(
    ("fault", "status", "kept", "failed"),
    [
        ("limited", "completed", 0, 4),
        ("hung", "expired", 0, 4),
        ("truncated", "completed", 0, 0),
    ],
)
def test_faults_befall_requests_each_in_its_way(fault: str, status: str, kept: int, failed: int):
    from adaptive_vtt.demo.server.openai_api import OpenAI, OpenAIBatches, _Batch

    server = DemoServer(FAKE, Behaviour(**{fault: 1.0}))
    batches = OpenAIBatches(OpenAI(FAKE, MODEL), server._faults, server.statistics)
    bodies = {line["custom_id"]: json.dumps(line["body"]).encode() for line in lines(4)}
    batches._begin(_Batch(id="b", seconds=0.0, input_file="f", metadata=None, requests=bodies))
    batch = batches._now("b")
    assert batch.status == status
    assert batch.counts == {"completed": kept, "failed": failed}
    counts = server.statistics
    assert (counts.requests, getattr(counts, fault)) == (4, 4)
    assert (counts.unseen_prompt_tokens > 0) == (fault == "truncated")


def test_exchanges_meet_faults_too_and_a_lost_reply_was_carried_out():
    openai = pytest.importorskip("openai")
    with DemoServer(FAKE, Behaviour(truncated=0.5, seed=2)) as server, client_of(server) as client:
        made, lost = 0, 0
        for _ in range(12):
            try:
                submitted(client, lines(1))
            except openai.APIConnectionError:
                lost += 1
            else:
                made += 1
        assert lost
        assert server.statistics.batches > made


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/files", b"no form", 400),
        ("/v1/batches", {"input_file_id": "file-0"}, 400),
        ("/v1/batches", [1], 400),
        ("/v1/batches/batch_0/cancel", {}, 404),
    ],
)
def test_what_is_no_file_and_no_batch_is_said_so(
    server: DemoServer, path: str, body: Any, code: int
):
    assert post(server.url + path, body)[0] == code
