"""The demo server: usual clients talk to it, and what it does wrong it does as configured."""

import base64
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.client import HTTPConnection, IncompleteRead
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from adaptive_vtt.datasets import from_table, phantom
from adaptive_vtt.datasets.synthetic.phantom import CONCEPTS
from adaptive_vtt.demo_server import (
    FAULTS,
    MODEL,
    REFUSAL,
    STATISTICS,
    Behaviour,
    DemoBrain,
    DemoServer,
)
from adaptive_vtt.demo_server.reading import options
from adaptive_vtt.errors import InputError
from adaptive_vtt.relations import resolve
from adaptive_vtt.testing import demo_server, tiny_dataset
from adaptive_vtt.types import Ask, Image, Sample
from adaptive_vtt.utils.image_codec import jpeg, png

FRAMES = phantom(24, size=96)
ORGANS = ("stomach", "small intestine", "large intestine")
CHANCE = 1e-6
"""A correct server fails a test of its rates with this probability, were seeds drawn anew."""


class Quiz:
    """Phantom frames with a question with options, and one whose answer is free."""

    name, has_images, concepts = "quiz", True, ("organ", "colour")

    def __len__(self) -> int:
        return len(FRAMES)

    def sample(self, index: int) -> Sample:
        turned = (*ORGANS[index % 3 :], *ORGANS[: index % 3])
        asks = {
            "organ": Ask("Which organ is shown?", turned),
            "colour": Ask("What colour is the sheath?"),
        }
        right = {
            "organ": ("ABC"[turned.index("large intestine")],),
            "colour": (("blue", "azure"), ("yellow",))[index % 2],
        }
        return replace(FRAMES.sample(index), asks=asks, answers=right)


def frame(index: int) -> Image:
    image = FRAMES.sample(index).image
    assert image is not None
    return image


def noisy(count: int) -> list[Image]:
    """Frames that differ in a few pixels: each gets answers of its own."""
    rng = np.random.default_rng(0)
    images = []
    for number in range(count):
        image = frame(number % len(FRAMES)).copy()
        image[rng.integers(0, 96, 4), rng.integers(0, 96, 4)] += 1
        images.append(image)
    return images


def uri(image: Image) -> str:
    return "data:image/png;base64," + base64.b64encode(png(image)).decode()


def messages(image: Image, text: str) -> list[Any]:
    parts = [
        {"type": "image_url", "image_url": {"url": uri(image)}},
        {"type": "text", "text": text},
    ]
    return [{"role": "user", "content": parts}]


def multiple_choice(ask: Ask) -> str:
    listed = [f"{'ABC'[place]}. {text}" for place, text in enumerate(ask.options)]
    return "\n".join([f"Question: {ask.text}", "Options:", *listed, "Select the right one."])


def is_likely(errors: int, tries: int, rate: float) -> bool:
    return bool(min(binom.cdf(errors, tries, rate), binom.sf(errors - 1, tries, rate)) > CHANCE / 2)


def post(url: str, content: Any, **headers: str) -> tuple[int, Any]:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as response:
        return json.load(response)


def client_of(server: DemoServer, **arguments: Any) -> Any:
    openai = pytest.importorskip("openai")
    given = {"api_key": "none", "max_retries": 0, "timeout": 10, **arguments}
    return openai.OpenAI(base_url=server.url + "/v1", **given)


@pytest.fixture(scope="module")
def brain() -> DemoBrain:
    return DemoBrain(FRAMES, error=0.2, worse=0.3, seed=1)


@pytest.fixture(scope="module")
def server(brain: DemoBrain) -> Iterator[DemoServer]:
    with demo_server(brain) as running:
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
            reply = server.brain.answer(frame(index), "polyp")
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
    replies = {name: server.brain.answer(frame(3), name) for name in CONCEPTS}
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
    polyp, script, blood = (server.brain.answer(frame(1), c) for c in ("polyp", "text", "blood"))
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
    brain = DemoBrain(FRAMES)
    with demo_server(brain, Behaviour(limited=1.0, retry_after=7), key="planted") as server:
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
        demo_server(brain, Behaviour(broken=1.0)) as server,
        client_of(server) as client,
        pytest.raises(openai.InternalServerError),
    ):
        client.chat.completions.create(model=MODEL, messages=messages(frame(0), "polyp?"))


def test_the_openai_clients_own_retries_get_through() -> None:
    with (
        demo_server(DemoBrain(FRAMES), Behaviour(limited=0.5, retry_after=0.01)) as server,
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
        expected = [server.brain.answer(image, c).yes for image in images for c in CONCEPTS]
        assert found["outputs"][0]["data"] == pytest.approx(expected)
    status, found = post(url, {"inputs": [{**flat, "data": [1, 2]}]})
    assert (status, found["error"][:26]) == (400, "image: expected 55296 valu")
    assert post(f"{server.url}/v2/models/other/infer", {})[0] == 404


def test_plain_json_round_trip(server: DemoServer) -> None:
    image = base64.b64encode(png(frame(5))).decode()
    status, found = post(server.url + "/predict", {"image": image, "concepts": ["blood", "text"]})
    assert status == 200
    assert found["scores"] == pytest.approx(server.brain.probabilities(frame(5), ["blood", "text"]))
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
    body: Any, status: int, sentence: str, brain: DemoBrain
) -> None:
    with DemoServer(brain, most_bytes=50_000, most_pixels=96 * 96) as server:
        found = post(server.url + "/predict", body)
        assert found[0] == status
        assert sentence in json.dumps(found[1])
        assert server.statistics.answered == 0


def test_questions_in_words_are_answered_from_the_datasets_own() -> None:
    brain = DemoBrain(Quiz(), error=0.0, worse=0.0)  # type: ignore[arg-type]  # all it needs
    for index in range(len(FRAMES)):
        sample = Quiz().sample(index)
        chosen = brain.answer(frame(index), multiple_choice(sample.asks["organ"]))
        assert (chosen.words,) == sample.answers["organ"]
        assert (
            brain.answer(frame(index), "What colour is the sheath?").words
            in (sample.answers["colour"])
        )
        examples = multiple_choice(Ask("Which organ is shown?", ORGANS)) + "\nAnswer: C\n\n"
        chosen = brain.answer(frame(index), examples + multiple_choice(sample.asks["organ"]))
        assert (chosen.words,) == sample.answers["organ"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A. one\nB. two", {"A": "one", "B": "two"}),
        ("(A) one\n(B) two\n", {"A": "one", "B": "two"}),
        ("A) x\nB) y\nAnswer: B\nA) one\nB) two", {"A": "one", "B": "two"}),
        ("A polyp is seen.\nIs it large?", {}),
        ("A. one\nC. three", {}),
    ],
)
def test_options_are_read_from_the_last_list(text: str, expected: dict[str, str]) -> None:
    assert options(text) == expected


def test_wrong_answers_come_at_the_rate_that_is_set() -> None:
    rates = {"polyp": 0.1, "text": 0.4}
    brain = DemoBrain(FRAMES, error=rates, worse=0.0, seed=3)
    images = noisy(500)
    for concept, rate in {**rates, "blood": 0.0}.items():
        wrong = sum(brain.answer(image, concept).right is False for image in images)
        assert is_likely(wrong, 500, rate), (concept, wrong)


def test_errors_grow_with_the_strain_of_a_perturbation() -> None:
    brain = DemoBrain(FRAMES, error=0.05, worse=0.5, seed=4)
    (cast,) = resolve(["medtest/white_balance"])
    strains, wrong, expected = [], 0, []
    for severity in (1, 5):
        strain = []
        for index in range(len(FRAMES)):
            for turn in range(4):
                rng = np.random.default_rng([severity, index, turn])
                image = cast.apply(FRAMES.sample(index), severity, rng).image
                assert image is not None
                replies = [brain.answer(image, concept) for concept in CONCEPTS]
                assert {reply.sample for reply in replies} == {FRAMES.sample_id(index)}
                strain.append(replies[0].strain)
                wrong += sum(reply.right is False for reply in replies)
                expected += [brain.error(concept, strain[-1]) for concept in CONCEPTS]
        strains.append(np.mean(strain))
    assert strains[1] > strains[0] + 0.1
    assert brain.answer(frame(0), "polyp").strain == 0
    spread = np.sqrt(np.sum(np.multiply(expected, np.subtract(1, expected))))
    assert abs(wrong - np.sum(expected)) < 4.9 * spread  # normal: probability 1e-6


def test_frames_are_recognised_after_every_relation_of_medtest(brain: DemoBrain) -> None:
    for relation in resolve(["identity", "medtest"]):
        for severity in {relation.severities[0], relation.severities[-1]}:
            for index in range(0, len(FRAMES), 6):
                rng = np.random.default_rng(index)
                image = relation.apply(FRAMES.sample(index), severity, rng).image
                assert image is not None
                place = brain.see(image).index
                assert place is not None, (relation.name, severity)
                assert brain.sample_id(place) == FRAMES.sample_id(index)


def test_the_same_image_gets_the_same_answer_and_another_its_own() -> None:
    first, second = (DemoBrain(FRAMES, error=0.5, seed=9) for _ in range(2))
    ours = [first.answer(image, "polyp").likelihoods for image in noisy(20)]
    assert ours == [second.answer(image, "polyp").likelihoods for image in noisy(20)]
    assert len({each["Yes"] for each in ours}) == 20
    other = DemoBrain(FRAMES, error=0.5, seed=10)
    assert ours != [other.answer(image, "polyp").likelihoods for image in noisy(20)]


def test_what_it_has_never_seen_is_a_guess(brain: DemoBrain) -> None:
    stripes = np.zeros((96, 96, 3), np.uint8)
    stripes[:, ::24] = 255
    for image, question in ((stripes, "polyp"), (frame(0), "What is the time?"), (None, "polyp")):
        reply = brain.answer(image, question)
        assert reply.right is None
        assert 0.4 < reply.yes < 0.6
    grey = frame(0).mean(axis=2, keepdims=True).astype(np.uint8)
    assert brain.answer(grey, "polyp").sample == FRAMES.sample_id(0)
    assert brain.see(np.zeros((1, 1, 1), np.uint8)).index is None


def test_refusals_and_rambling_come_at_their_rates_and_keep_the_answer() -> None:
    plain = DemoBrain(FRAMES, error=0.3, seed=5)
    brain = DemoBrain(FRAMES, error=0.3, refusals=0.2, rambling=0.5, seed=5)
    images = noisy(400)
    replies = [brain.answer(image, "stool") for image in images]
    refused = [reply for reply in replies if reply.refused]
    rambled = [reply for reply in replies if reply.rambled]
    assert is_likely(len(refused), 400, 0.2)
    assert is_likely(len(rambled), 400 - len(refused), 0.5)
    assert {reply.words for reply in refused} == {REFUSAL}
    assert all(reply.choice in reply.words and len(reply.words) > 100 for reply in rambled)
    assert [r.choice for r in replies] == [plain.answer(image, "stool").choice for image in images]


def test_long_answers_are_cut_at_the_limit_of_tokens_and_billed_as_sent() -> None:
    with demo_server(DemoBrain(FRAMES, rambling=1.0)) as server:
        asked = {"model": MODEL, "messages": messages(frame(0), "Is there a polyp?")}
        url = server.url + "/v1/chat/completions"
        _, whole = post(url, asked)
        _, cut = post(url, {**asked, "max_tokens": 5})
        assert (whole["choices"][0]["finish_reason"], cut["choices"][0]["finish_reason"]) == (
            "stop",
            "length",
        )
        assert cut["usage"]["completion_tokens"] == 5
        text = whole["choices"][0]["message"]["content"]
        assert text.startswith(cut["choices"][0]["message"]["content"])
        billed = [each["usage"] for each in (whole, cut)]
        counts = server.statistics
        assert counts.completion_tokens == sum(usage["completion_tokens"] for usage in billed)
        assert counts.prompt_tokens == sum(usage["prompt_tokens"] for usage in billed)


def test_faults_come_at_their_rates_and_do_not_depend_on_the_order() -> None:
    behaviour = Behaviour(limited=0.1, broken=0.05, hung=0.02, truncated=0.08, seed=2)
    bodies = [f"body {number}".encode() for number in range(4000)]
    fates = {body: behaviour.fate(body, 0) for body in bodies}
    assert fates == {body: behaviour.fate(body, 0) for body in reversed(bodies)}
    for fault in FAULTS:
        count = sum(fate.fault == fault for fate in fates.values())
        assert is_likely(count, 4000, getattr(behaviour, fault)), (fault, count)
    assert {fate.status for fate in fates.values()} == {500, 502, 503, 504}
    slow = Behaviour(latency=0.5, spread=0.4)
    delays = np.log([slow.fate(body, 0).delay for body in bodies])
    assert np.mean(delays) == pytest.approx(np.log(0.5), abs=4.9 * 0.4 / 4000**0.5)
    assert np.std(delays) == pytest.approx(0.4, rel=0.06)


def test_the_statistics_add_up_under_faults_of_every_kind() -> None:
    behaviour = Behaviour(limited=0.15, broken=0.1, hung=0.05, truncated=0.1, seed=6)
    seen: dict[str, int] = dict.fromkeys(("answered", "limited", "broken", "cut", "hung"), 0)
    paid = [0, 0]
    with demo_server(DemoBrain(FRAMES, refusals=0.1, seed=6), behaviour) as server:
        for image in noisy(120):
            connection = HTTPConnection("127.0.0.1", server.port, timeout=0.15)
            asked = {"model": MODEL, "messages": messages(image, "Is there a polyp?")}
            try:
                connection.request("POST", "/v1/chat/completions", json.dumps(asked))
                response = connection.getresponse()
                content = json.loads(response.read())
            except TimeoutError:
                seen["hung"] += 1
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


def test_an_answer_that_nobody_waits_for_is_billed_as_lost(brain: DemoBrain) -> None:
    with demo_server(brain, Behaviour(latency=0.3)) as server:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=0.1)
        asked = {"model": MODEL, "messages": messages(frame(0), "polyp?")}
        connection.request("POST", "/v1/chat/completions", json.dumps(asked))
        with pytest.raises(TimeoutError):
            connection.getresponse()
        connection.close()
        deadline = time.monotonic() + 5
        while server.statistics.lost == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert (server.statistics.lost, server.statistics.answered) == (1, 0)
        assert server.statistics.unseen_prompt_tokens > 0


def test_64_connections_are_kept_open_and_served_at_once(brain: DemoBrain) -> None:
    image = base64.b64encode(png(frame(0))).decode()
    body = json.dumps({"image": image, "concepts": ["polyp"]})
    expected = brain.probabilities(frame(0), ["polyp"])
    ready = threading.Barrier(64)

    def ask(server: DemoServer) -> set[int]:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
        sockets = set()
        for _ in range(3):
            ready.wait(10)
            connection.request("POST", "/predict", body)
            assert json.loads(connection.getresponse().read())["scores"] == pytest.approx(expected)
            assert isinstance(connection.sock, socket.socket)  # None after "Connection: close"
            sockets.add(connection.sock.getsockname()[1])
        connection.close()
        return sockets

    with demo_server(brain, Behaviour(latency=0.4)) as server:
        with ThreadPoolExecutor(64) as pool:
            used = [*pool.map(ask, [server] * 64)]
        assert all(len(ports) == 1 for ports in used)
        assert server.statistics.answered == 192
        assert server.statistics.most_at_once == 64


def test_nothing_listens_after_close_even_with_calls_hanging(brain: DemoBrain) -> None:
    with demo_server(brain, Behaviour(hung=1.0)) as server:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
        image = base64.b64encode(png(frame(0))).decode()
        connection.request("POST", "/predict", json.dumps({"image": image}))
        while server.statistics.hung == 0:
            time.sleep(0.01)
        with pytest.raises(InputError, match=f"cannot listen on port {server.port}"):
            DemoServer(brain, port=server.port).start()
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
        (lambda: DemoBrain(FRAMES, error=1.2), "expected error of 'polyp' in 0..1, got 1.2"),
        (lambda: DemoBrain(FRAMES, error={"polip": 0.1}), "did you mean 'polyp'"),
        (lambda: DemoBrain(tiny_dataset(images=False)), "has no images to recognise"),
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
    assert DemoBrain(from_table([frame(2), frame(4)], table)).see(frame(4)).index == 1


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
        rest, errors = process.communicate(timeout=10)
    assert process.returncode == 0
    assert "0 requests: 0 answered" in rest
    assert errors == ""
