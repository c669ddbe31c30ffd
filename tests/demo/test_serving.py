"""The demo server: usual clients talk to it, and what it does wrong it does as configured."""

import asyncio
import base64
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, IncompleteRead
from select import select
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.datasets import from_table
from adaptive_vtt.demo.phantom_frames import CONCEPTS
from adaptive_vtt.demo.server import MODEL, STATISTICS, Behaviour, DemoModel, DemoServer
from adaptive_vtt.errors import InputError
from adaptive_vtt.models import OpenAIChat, Prices
from adaptive_vtt.relations import resolve
from adaptive_vtt.testing import demo_server, tiny_dataset
from adaptive_vtt.types import Prompt
from adaptive_vtt.utils.image_codec import jpeg, png
from tests.helpers.command_line import run
from tests.helpers.served import FRAMES, client_of, frame, get, messages, noisy, post


@pytest.fixture(scope="module")
def fake() -> DemoModel:
    return DemoModel(FRAMES, error=0.2, worse=0.3, seed=1)


@pytest.fixture(scope="module")
def server(fake: DemoModel) -> Iterator[DemoServer]:
    with demo_server(fake) as running:
        yield running


def test_the_openai_client_asks_and_is_answered_as_without_http(server: DemoServer) -> None:
    with client_of(server) as client:
        assert [model.id for model in client.models.list()] == [MODEL]
        assert client.models.retrieve(MODEL).id == MODEL
        for index in range(12):
            text = "Is there a polyp in this image? Answer Yes or No with no other text."
            said = client.chat.completions.create(
                model=MODEL, messages=messages(frame(index), text), logprobs=True, top_logprobs=2
            )
            reply = server.fake.answer(frame(index), "polyp")
            (choice,) = said.choices
            assert choice.message.content == reply.words
            assert choice.finish_reason == "stop"
            (token,) = choice.logprobs.content
            found = {each.token: np.exp(each.logprob) for each in token.top_logprobs}
            assert found == pytest.approx(reply.likelihoods)
            assert sum(found.values()) == pytest.approx(1)
            assert reply.right == ((reply.yes > 0.5) == FRAMES.sample(index).truth["polyp"])
            assert said.usage.prompt_tokens == -(-len(text) // 4) + 85 + 170
            assert said.usage.completion_tokens == 1


@pytest.mark.parametrize("side", [64, 256, 513, 1025])
def test_what_it_bills_lies_within_what_was_guessed_before(server: DemoServer, side: int) -> None:
    """It counts images by OpenAI's tiles, where the first guess goes by Anthropic's pixels."""
    pytest.importorskip("openai")
    table = Prices(input=2.5, output=10.0)
    model = OpenAIChat(MODEL, base_url=server.url + "/v1", prices=table, max_tokens=64)
    prompt = Prompt(np.zeros((side, side, 3), np.uint8), ("polyp",), "s", "identity", 0)
    with model:
        (answer,) = model.ask([prompt])
    least, most = (
        guess.call + guess.pixel * min(side**2, guess.most_pixels)
        for guess in (model.price_guess, model.dear_guess)
    )
    assert least <= answer.cost <= most


def test_a_json_schema_is_filled_by_concept_and_type(server: DemoServer) -> None:
    schema = {
        "type": "object",
        "properties": {
            "polyp": {"type": "boolean"},
            "poor_preparation": {"type": "number"},
            "text": {"type": "string", "enum": ["yes", "no"]},
        },
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "findings", "schema": schema}}
    with client_of(server) as client:
        said = client.chat.completions.create(
            model=MODEL, messages=messages(frame(3), "What is there?"), response_format=wanted
        )
    replies = {name: server.fake.answer(frame(3), name) for name in CONCEPTS}
    assert json.loads(said.choices[0].message.content) == {
        "polyp": replies["polyp"].choice == "Yes",
        "poor_preparation": pytest.approx(replies["poor preparation"].yes, abs=1e-6),
        "text": replies["text"].choice.lower(),
    }


def test_numbered_questions_are_answered_in_numbered_lines(server: DemoServer) -> None:
    text = (
        "Sample answers 1:\n1: No\n2: Yes\nQuestion 1: Is there a polyp?\n"
        "Question 2: Is text visible?\nOptions:\nA. Yes\nB. No\nQuestion 3: Any blood?"
    )
    polyp, script, blood = (server.fake.answer(frame(1), c) for c in ("polyp", "text", "blood"))
    letter = {"Yes": "A", "No": "B"}[script.choice]
    asked: dict[str, Any] = {"model": MODEL, "messages": messages(frame(1), text)}
    _, said = post(server.url + "/v1/chat/completions", asked)
    assert said["choices"][0]["message"]["content"].splitlines() == [
        f"1: {polyp.choice}",
        f"2: {letter}",
        f"3: {blood.choice}",
    ]
    schema = {"type": "object", "properties": {n: {"type": "number"} for n in "13"}}
    asked["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
    _, said = post(server.url + "/v1/chat/completions", asked)
    found = json.loads(said["choices"][0]["message"]["content"])
    assert found == pytest.approx({"1": polyp.yes, "3": blood.yes}, abs=1e-6)


def test_the_openai_client_sees_each_mistake_as_the_error_it_is() -> None:
    openai = pytest.importorskip("openai")
    fake = DemoModel(FRAMES)
    with demo_server(fake, Behaviour(limited=1.0, retry_after=7), key="planted") as server:
        with client_of(server, api_key="planted") as client:
            with pytest.raises(openai.RateLimitError) as limited:
                client.chat.completions.create(model=MODEL, messages=messages(frame(0), "polyp?"))
            assert limited.value.response.headers["retry-after"] == "7"
            with pytest.raises(openai.NotFoundError, match="`gpt` does not exist") as missing:
                client.chat.completions.create(model="gpt", messages=messages(frame(0), "polyp?"))
            assert missing.value.code == "model_not_found"
        with client_of(server, api_key="wrong") as client:
            with pytest.raises(openai.AuthenticationError, match="API key") as refused:
                client.models.list()
            assert "planted" not in str(refused.value)
        assert "planted" not in json.dumps(get(server.url + STATISTICS))
        assert "planted" not in repr(server)
    with (
        demo_server(fake, Behaviour(broken=1.0)) as server,
        client_of(server) as client,
        pytest.raises(openai.InternalServerError),
    ):
        client.chat.completions.create(model=MODEL, messages=messages(frame(0), "polyp?"))


def test_the_openai_clients_own_retries_get_through() -> None:
    with (
        demo_server(DemoModel(FRAMES), Behaviour(limited=0.5, retry_after=0.01)) as server,
        client_of(server, max_retries=20) as client,
    ):
        for image in noisy(8):
            client.chat.completions.create(model=MODEL, messages=messages(image, "blood?"))
        counts = server.statistics
    assert counts.answered == 8
    assert counts.requests == counts.answered + counts.limited
    assert counts.limited > 0


def test_open_inference_round_trip(server: DemoServer) -> None:
    assert get(server.url + "/v2/health/ready")["ready"]
    assert get(server.url + "/v2")["name"] == "adaptive-vtt"
    about = get(f"{server.url}/v2/models/{MODEL}")
    assert about["inputs"] == [{"name": "image", "datatype": "UINT8", "shape": [-1, -1, -1, 3]}]
    assert about["outputs"][0]["parameters"]["concepts"] == [*CONCEPTS]
    images = np.stack([frame(0), frame(1)])
    flat = {"name": "image", "datatype": "UINT8", "shape": [*images.shape]}
    url = f"{server.url}/v2/models/{MODEL}/infer"
    for data in (images.tolist(), images.ravel().tolist()):
        status, found = post(url, {"id": "7", "inputs": [{**flat, "data": data}]})
        assert status == 200
        assert (found["id"], found["outputs"][0]["shape"]) == ("7", [2, 6])
        expected = [server.fake.answer(image, c).yes for image in images for c in CONCEPTS]
        assert found["outputs"][0]["data"] == pytest.approx(expected)
    status, found = post(url, {"inputs": [{**flat, "data": [1, 2]}]})
    assert (status, found["error"][:26]) == (400, "image: expected 55296 valu")
    assert post(f"{server.url}/v2/models/other/infer", {})[0] == 404


def test_plain_json_round_trip(server: DemoServer) -> None:
    image = base64.b64encode(png(frame(5))).decode()
    status, found = post(server.url + "/predict", {"image": image, "concepts": ["blood", "text"]})
    assert status == 200
    assert found["scores"] == pytest.approx(server.fake.probabilities(frame(5), ["blood", "text"]))
    status, found = post(server.url + "/predict", {"image": image, "concepts": ["polip"]})
    assert status == 400
    assert "did you mean 'polyp'" in found["error"]


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b"{", 400, "the body is no JSON"),
        (b"[]", 400, "expected a JSON object"),
        ({"image": "!"}, 400, "expected an image in base64"),
        ({"image": "https://example.org/a.png"}, 400, "none is fetched"),
        ({"image": base64.b64encode(b"text").decode()}, 400, "expected an image file"),
        ({"image": base64.b64encode(png(frame(0))[:60]).decode()}, 400, "cannot be decoded"),
        (
            {"image": base64.b64encode(png(np.zeros((97, 97, 3), np.uint8))).decode()},
            413,
            "at most 9216 pixels, got an image of 97 x 97",
        ),
        (b"x" * 60_000, 413, "at most 50000 bytes"),
    ],
)
def test_what_cannot_be_answered_is_rejected_with_a_sentence(
    body: Any, status: int, sentence: str, fake: DemoModel
) -> None:
    with DemoServer(fake, most_bytes=50_000, most_pixels=96 * 96) as server:
        found = post(server.url + "/predict", body)
        assert found[0] == status
        assert sentence in json.dumps(found[1])
        assert server.statistics.answered == 0


@pytest.mark.slow
def test_frames_are_recognised_after_every_relation_of_medtest(fake: DemoModel) -> None:
    for relation in resolve(["identity", "medtest"]):
        for severity in {relation.severities[0], relation.severities[-1]}:
            for index in range(0, len(FRAMES), 6):
                rng = np.random.default_rng(index)
                image = relation.apply(FRAMES.sample(index), severity, rng).image
                assert image is not None
                place = fake.see(image).index
                assert place is not None, (relation.name, severity)
                assert fake.sample_id(place) == FRAMES.sample_id(index)


def test_what_it_has_never_seen_is_a_guess(fake: DemoModel) -> None:
    stripes = np.zeros((96, 96, 3), np.uint8)
    stripes[:, ::24] = 255
    for image, question in ((stripes, "polyp"), (frame(0), "What is the time?"), (None, "polyp")):
        reply = fake.answer(image, question)
        assert reply.right is None
        assert 0.4 < reply.yes < 0.6
    grey = frame(0).mean(axis=2, keepdims=True).astype(np.uint8)
    assert fake.answer(grey, "polyp").sample == FRAMES.sample_id(0)
    assert fake.see(np.zeros((1, 1, 1), np.uint8)).index is None


def hangs(connection: HTTPConnection, server: DemoServer, before: int) -> bool:
    """Whether a request will never be answered, of ``before`` ones so far: the server knows, so no
    patience of ours decides."""
    while not select([connection.sock], [], [], 0.005)[0]:
        if server.statistics.hung > before:
            return True
    return False


def test_the_statistics_add_up_under_faults_of_every_kind() -> None:
    behaviour = Behaviour(limited=0.15, broken=0.1, hung=0.05, truncated=0.1, seed=6)
    seen: dict[str, int] = dict.fromkeys(("answered", "limited", "broken", "cut", "hung"), 0)
    paid = [0, 0]
    with demo_server(DemoModel(FRAMES, refusals=0.1, seed=6), behaviour) as server:
        for image in noisy(120):
            connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
            asked = {"model": MODEL, "messages": messages(image, "Is there a polyp?")}
            try:
                hung = server.statistics.hung
                connection.request("POST", "/v1/chat/completions", json.dumps(asked))
                if hangs(connection, server, hung):
                    seen["hung"] += 1
                    continue
                response = connection.getresponse()
                content = json.loads(response.read())
            except IncompleteRead:
                seen["cut"] += 1
            else:
                kind = {200: "answered", 429: "limited"}.get(response.status, "broken")
                seen[kind] += 1
                if kind == "answered":
                    paid[0] += content["usage"]["prompt_tokens"]
                    paid[1] += content["usage"]["completion_tokens"]
            finally:
                connection.close()
        counts = get(server.url + STATISTICS)
    assert counts["requests"] == 120 == sum(seen.values())
    assert [counts[kind] for kind in ("answered", "limited", "broken", "truncated", "hung")] == [
        *seen.values()
    ]
    assert all(count > 0 for count in seen.values())
    assert [counts["prompt_tokens"], counts["completion_tokens"]] == paid
    per_call = paid[0] // counts["answered"]
    assert counts["unseen_prompt_tokens"] == per_call * counts["truncated"]
    assert 0 < counts["refused"] < counts["answered"]


def test_an_answer_that_nobody_waits_for_is_billed_as_lost(fake: DemoModel) -> None:
    with demo_server(fake, Behaviour(latency=1.0)) as server:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=0.1)
        asked = {"model": MODEL, "messages": messages(frame(0), "polyp?")}
        connection.request("POST", "/v1/chat/completions", json.dumps(asked))
        with pytest.raises(TimeoutError):
            connection.getresponse()
        connection.close()
        deadline = time.monotonic() + 30
        while server.statistics.lost == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert (server.statistics.lost, server.statistics.answered) == (1, 0)
        assert server.statistics.unseen_prompt_tokens > 0


def test_64_connections_are_kept_open_and_served_at_once(
    fake: DemoModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer waits until the 64 of its round have been asked."""
    pause, came = asyncio.sleep, [0]

    async def with_the_others(_: float) -> None:
        came[0] += 1
        everyone = -(-came[0] // 64) * 64
        while came[0] < everyone:
            await pause(0.005)

    image = base64.b64encode(png(frame(0))).decode()
    body = json.dumps({"image": image, "concepts": ["polyp"]})
    expected = fake.probabilities(frame(0), ["polyp"])
    ready = threading.Barrier(64)

    def ask(server: DemoServer) -> set[int]:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
        sockets = set()
        for _ in range(3):
            ready.wait(60)
            connection.request("POST", "/predict", body)
            assert json.loads(connection.getresponse().read())["scores"] == pytest.approx(expected)
            assert isinstance(connection.sock, socket.socket)  # None after "Connection: close"
            sockets.add(connection.sock.getsockname()[1])
        connection.close()
        return sockets

    with demo_server(fake) as server:
        monkeypatch.setattr(asyncio, "sleep", with_the_others)
        with ThreadPoolExecutor(64) as pool:
            used = [*pool.map(ask, [server] * 64)]
        assert all(len(ports) == 1 for ports in used)
        assert server.statistics.answered == 192
        assert server.statistics.most_at_once == 64


def test_nothing_listens_after_close_even_with_calls_hanging(fake: DemoModel) -> None:
    with demo_server(fake, Behaviour(hung=1.0)) as server:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
        image = base64.b64encode(png(frame(0))).decode()
        connection.request("POST", "/predict", json.dumps({"image": image}))
        while server.statistics.hung == 0:
            time.sleep(0.01)
        with pytest.raises(InputError, match=f"cannot listen on port {server.port}"):
            DemoServer(fake, port=server.port).start()
    with pytest.raises((ConnectionError, OSError)):
        connection.getresponse()
    connection.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=1)
    server.close()  # again is no mistake


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Behaviour(limited=0.6, broken=0.6), "sum to at most 1, got 1.2"),
        (lambda: Behaviour(latency=-1.0), "expected latency of at least 0, got -1"),
        (lambda: DemoModel(FRAMES, error=1.2), "expected error of 'polyp' in 0..1, got 1.2"),
        (lambda: DemoModel(FRAMES, error={"polip": 0.1}), "did you mean 'polyp'"),
        (lambda: DemoModel(tiny_dataset(images=False)), "has no images to recognise"),
    ],
)
def test_mistakes_get_one_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()


def test_jpegs_are_recognised_as_the_frames_they_are(server: DemoServer) -> None:
    image = base64.b64encode(jpeg(frame(2), 75)).decode()
    status, _ = post(server.url + "/predict", {"image": image})
    assert status == 200
    table = pd.DataFrame({"polyp": [0, 1]})
    assert DemoModel(from_table([frame(2), frame(4)], table)).see(frame(4)).index == 1


@pytest.mark.parametrize("latency", ["nan", "inf", "-1"])
def test_the_command_waits_for_a_time_that_ends(
    latency: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("serve-demo", "--latency", latency) == 2
    told = f"--latency: expected seconds, 0 or more, got {float(latency)}"
    assert told in capsys.readouterr().err


def test_the_command_says_where_it_serves_and_ends_with_ctrl_c() -> None:
    command = "from adaptive_vtt.cli import main; main()"
    options = ("--port", "0", "--count", "4", "--size", "64", "--latency", "0", "--faults", "0")
    with subprocess.Popen(
        [sys.executable, "-c", command, "serve-demo", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                break
        url = next(line.split()[1] for line in lines if line.startswith("serving"))
        assert get(url + "/models")["data"][0]["id"] == MODEL
        assert any("--max-cost" in line for line in lines)
        process.send_signal(2)
        try:
            rest, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()  # where Ctrl-C is ignored, as under nohup
            raise
    assert process.returncode == 0
    assert "0 requests: 0 answered" in rest
    assert errors == ""
