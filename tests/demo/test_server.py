"""The demo's server: OpenAI's own client asks it, and it fails and bills as it says."""

import base64
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adaptive_vtt as avtt
from adaptive_vtt.config import parse_spec
from adaptive_vtt.datasets import fashion
from adaptive_vtt.datasets.formats.fashion_mnist import CONCEPT_NAMES
from adaptive_vtt.demo.answers import Classifier
from adaptive_vtt.demo.fashion_cnn import predict
from adaptive_vtt.demo.server import PRICE_INPUT, PRICE_OUTPUT, STATISTICS, DemoServer
from adaptive_vtt.models import OpenAIChat, Prices, Retries
from adaptive_vtt.types import Answer, Image, Prompt
from adaptive_vtt.utils.image_codec import png
from tests.helpers.command_line import run
from tests.helpers.served import client_of, get, messages, post

CLOTHES = fashion()
MODEL = Classifier.name
BAG = "Is there a bag in this image? Answer Yes or No with no other text."


def image(index: int) -> Image:
    return CLOTHES.sample(index).require_image()


def expected(index: int, concept: str = "bag") -> float:
    return float(predict([image(index)])[0, CONCEPT_NAMES.index(concept)])


@pytest.fixture(scope="module")
def server() -> Iterator[DemoServer]:
    with DemoServer() as running:
        yield running


def test_it_answers_as_the_bundled_classifier_does(server: DemoServer) -> None:
    with client_of(server) as client:
        assert [model.id for model in client.models.list()] == [MODEL]
        for index in range(6):
            answer_text = client.chat.completions.create(
                model=MODEL, messages=messages(image(index), BAG), logprobs=True, top_logprobs=2
            )
            (choice,) = answer_text.choices
            yes = expected(index)
            assert choice.message.content == ("Yes" if yes > 0.5 else "No")
            (token,) = choice.logprobs.content
            likely = {each.token: np.exp(each.logprob) for each in token.top_logprobs}
            assert likely["Yes"] == pytest.approx(yes, abs=1e-6)
            assert sum(likely.values()) == pytest.approx(1, abs=1e-6)
            assert answer_text.usage.prompt_tokens == -(-len(BAG) // 4) + 85 + 170
            assert answer_text.usage.completion_tokens == 1


@pytest.mark.parametrize(("answers", "yes_from"), [("one", "auto"), ("all", "structured")])
def test_an_audits_model_gets_the_classifiers_probabilities(
    server: DemoServer, answers: Any, yes_from: Any
) -> None:
    pytest.importorskip("openai")
    concepts = ("shirt",) if answers == "one" else ("t-shirt", "shirt", "footwear")
    address = f"{server.url}/v1"
    model = OpenAIChat(MODEL, base_url=address, answers=answers, yes_from=yes_from)
    prompts = [Prompt(image(k), concepts, str(k), "identity", 0) for k in range(4)]
    with closing(model):
        answer_text = model.ask(prompts)
    values = [answer.values for answer in answer_text if isinstance(answer, Answer)]
    wanted = [[expected(k, concept) for concept in concepts] for k in range(4)]
    assert np.array(values, float) == pytest.approx(np.array(wanted), abs=1e-5)


def test_what_fails_is_counted_and_what_is_billed_costs() -> None:
    seen = dict.fromkeys(("answered", "limited", "broken", "cut"), 0)
    paid = np.zeros(2, int)
    with DemoServer(fail=0.5, seed=2) as server:
        for index in range(60):
            with closing(HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:
                asked = {"model": MODEL, "messages": messages(image(index), BAG)}
                connection.request("POST", "/v1/chat/completions", json.dumps(asked))
                response = connection.getresponse()
                try:
                    content = json.loads(response.read())
                except IncompleteRead:
                    seen["cut"] += 1
                    continue
                seen[{200: "answered", 429: "limited", 503: "broken"}[response.status]] += 1
                if response.status == 200:
                    usage = content["usage"]
                    paid += usage["prompt_tokens"], usage["completion_tokens"]
        counts = get(server.url + STATISTICS)
    assert {name: counts[name] for name in seen} == seen
    assert all(seen.values())
    assert counts["requests"] == 60 == sum(seen.values())
    billed = counts["prompt_tokens"], counts["completion_tokens"]
    assert sum(billed) - sum(paid) == counts["unseen_tokens"] > 0
    assert counts["cost"] == pytest.approx(
        (billed[0] * PRICE_INPUT + billed[1] * PRICE_OUTPUT) / 1e6
    )


def test_an_audit_stays_under_its_cap_and_resumes_for_no_more_than_is_new(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    cap, spent = 0.02, []
    space = avtt.QuestionSpace(CLOTHES, ["identity"])
    with DemoServer(fail=0.1, seed=4) as server:
        for factor in (1, 2):
            model = OpenAIChat(
                MODEL,
                base_url=f"{server.url}/v1",
                prices=Prices(input=PRICE_INPUT, output=PRICE_OUTPUT),
                max_input_tokens=600,
                max_tokens=64,
                retries=Retries(times=2, first_wait=0.001),
            )
            given = {"half_width": 0.01, "seed": 0, "journal": tmp_path / "journal.db"}
            given |= {"surrogate": False, "self_taught": False}
            with (
                closing(model),
                avtt.Audit(space, model, max_cost=factor * cap, **given) as audit,
            ):
                result = audit.run()
                calls = len(audit.journal.calls())
            spent.append(server.statistics.cost)
            assert server.statistics.cost <= result.cost <= factor * cap
    assert cap / 2 < spent[0] < spent[1]
    assert server.statistics.answered == calls  # no answer was paid for twice


def test_each_mistake_is_the_error_it_is_to_the_client() -> None:
    openai = pytest.importorskip("openai")
    with DemoServer(key="planted") as server:
        with (
            client_of(server, api_key="planted") as client,
            pytest.raises(openai.NotFoundError, match="`gpt` does not exist"),
        ):
            client.chat.completions.create(model="gpt", messages=messages(image(0), BAG))
        with (
            client_of(server, api_key="wrong") as client,
            pytest.raises(openai.AuthenticationError, match="API key") as refused,
        ):
            client.models.list()
        assert "planted" not in str(refused.value) + json.dumps(get(server.url + STATISTICS))


DATA = base64.b64encode(png(image(0))).decode()


@pytest.mark.parametrize(
    ("url", "status", "sentence"),
    [
        ("https://example.org/a.png", 400, "a url that is a data URI"),
        ("data:image/png;base64,!", 400, "expected an image in base64"),
        ("data:image/png;base64,aGVsbG8=", 400, "expected an image file"),
        (f"data:image/png;base64,{DATA[:100]}", 400, "cannot be decoded"),
        (5, 400, "a url that is a data URI"),
    ],
)
def test_what_is_no_image_is_rejected_with_a_sentence(
    server: DemoServer, url: Any, status: int, sentence: str
) -> None:
    parts = [{"type": "image_url", "image_url": {"url": url}}]
    asked = {"model": MODEL, "messages": [{"role": "user", "content": parts}]}
    before = server.statistics.rejected
    code, content = post(server.url + "/v1/chat/completions", asked)
    assert (code, server.statistics.rejected) == (status, before + 1)
    assert sentence in content["error"]["message"]


@pytest.mark.parametrize(
    "change",
    [
        {"messages": []},
        {"messages": [1]},
        {"messages": [{"role": "user", "content": 5}]},
        {"stream": True},
        {"max_tokens": -1},
        {"logprobs": True, "top_logprobs": 21},
        {"response_format": {"type": "json_schema"}},
    ],
)
def test_a_request_that_is_wrong_is_a_400(server: DemoServer, change: dict[str, Any]) -> None:
    asked = {"model": MODEL, "messages": messages(image(0), BAG)} | change
    assert post(server.url + "/v1/chat/completions", asked)[0] == 400


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--latency", "nan"), "latency: expected a number of 0 or more, got nan"),
        (("--fail", "1.5"), "fail: expected a share between 0 and 1, got 1.5"),
        (("--error-rate", "-1"), "error_rate: expected a share between 0 and 1, got -1"),
        (("--key-env", "NO_SUCH_KEY"), "--key-env: expected the environment variable NO_SUCH_KEY"),
    ],
)
def test_the_command_refuses_what_cannot_be(
    options: tuple[str, str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("serve-demo", *options) == 2
    assert sentence in capsys.readouterr().err


def test_the_command_prints_a_spec_and_ends_with_ctrl_c_and_its_bill() -> None:
    without = "import sys; sys.modules['openai'] = None"
    command = f"{without}; from adaptive_vtt.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", command, "serve-demo", "--port", "0"],
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
        text = "".join(lines)
        assert "pip install 'openai>=" in text
        toml = re.search(r"^\[dataset\].*?(?=\n\n)", text, re.DOTALL | re.MULTILINE)
        assert toml is not None
        spec = parse_spec(tomllib.loads(toml[0]), "printed")
        assert get(spec.model.url + "/models")["data"][0]["id"] == spec.model.model == MODEL
        process.send_signal(2)
        try:
            rest, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()  # where Ctrl-C is ignored, as under nohup
            raise
    assert process.returncode == 0
    assert "0 requests: 0 answered" in rest
    assert "0.0000 dollars" in rest
    assert errors == ""
