"""Models asked through Inspect: what is sent, what is read, and that no call is paid for unseen."""

import json
import math
from contextlib import closing, nullcontext
from dataclasses import replace

import numpy as np
import pytest

from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.models import InspectModel, Prices, Retries, Usage
from adaptive_vtt.models.network.prompt_templates import TEMPLATES
from adaptive_vtt.types import Answer, Ask, Prompt, Unanswered
from tests.config.test_specs import audited, copied
from tests.helpers.endpoint import Behaviour, DemoModel, demo_server
from tests.helpers.served import FRAMES, frame

pytest.importorskip("inspect_ai")
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    Logprob,
    Logprobs,
    ModelOutput,
    ModelUsage,
    TopLogprob,
)

ASK = Prompt(np.zeros((8, 6, 3), np.uint8), ("polyp",), "s1", "identity", 0)
PRICES = Prices(input=1.0, output=10.0, tokens=1)
WORST = 30 * 1.0 + 4 * 10.0


def output(text="Yes", *, p=None, usage=(20, 1), ended="stop", **counts):
    """A reply; ``p``: with the probabilities of Yes and No."""
    tops = [] if p is None else [("Yes", p), ("No", 1 - p)]
    listed = [TopLogprob(token=token, logprob=math.log(q)) for token, q in tops]
    first = Logprob(token=text, logprob=math.log(p or 1.0), top_logprobs=listed)
    choice = ChatCompletionChoice(
        message=ChatMessageAssistant(content=text),
        stop_reason=ended,
        logprobs=Logprobs(content=[first]) if listed else None,
    )
    sent, answered = usage or (0, 0)
    used = ModelUsage(input_tokens=sent, output_tokens=answered, **counts)
    return ModelOutput(model="m", choices=[choice], usage=used)


class Failed(Exception):
    """An error of a provider's library."""

    def __init__(self, status, message="no"):
        super().__init__(message)
        if status is not None:
            self.status_code = status


class Asked(list):
    """A mock model, and the messages and settings that it was sent."""

    def __init__(self, reply=lambda config: output(), **options):
        async def no_wait(_):
            pass

        def answered(messages, tools, choice, config):
            self.append((messages, config))
            result = reply(config)
            if isinstance(result, Exception):
                raise result
            return result

        given = {"yes_from": "words", "max_tokens": 4, "max_input_tokens": 30, **options}
        given = {"retries": Retries(times=2), "prices": PRICES, "sleep": no_wait, **given}
        self.model = InspectModel("mockllm/model", provider={"custom_outputs": answered}, **given)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.model.close()

    def ask(self, prompt=ASK):
        return self.model.ask([prompt])[0]


def test_a_prompt_is_an_image_and_words_and_nothing_is_repeated_kept_or_batched():
    template = replace(TEMPLATES["medtest"], system="You are an endoscopist.")
    with Asked(template=template) as asked:
        asked.ask()
    ((messages, config),) = asked
    system, user = messages
    assert system.content == template.system
    image, text = user.content
    assert image.image.startswith("data:image/png;base64,iVBOR")
    assert "polyp" in text.text.lower()
    settings = config.model_dump(exclude_none=True)
    assert settings | {"max_retries": 0, "max_tokens": 4, "temperature": 0} == settings
    assert not any(settings[name] for name in ("cache", "cache_prompt", "batch"))


def test_a_provider_without_log_probabilities_is_asked_once_in_vain_and_read_in_words():
    with Asked(lambda config: output("No"), yes_from="auto") as asked:
        answers = [asked.ask(), asked.ask()]
        assert asked.model.elicitation()[""].yes_from == "words"
        assert asked.model.statistics()["failures"] == {"no log-probabilities": 1}
    assert answers == [Answer((0.0,), 60.0), Answer((0.0,), 30.0)]
    assert [config.logprobs for _, config in asked] == [True, None, None]


@pytest.mark.parametrize(
    ("reply", "cost"),
    [
        (output(usage=(20, 2)), 40.0),
        (output(usage=(20, 2), input_tokens_cache_read=3, input_tokens_cache_write=2), 45.0),
        (output(usage=None), WORST),
        (output(usage=(20, -1)), 20.0 + 4 * 10.0),
    ],
)
def test_cached_tokens_cost_their_full_price_and_uncounted_ones_the_worst(reply, cost):
    with Asked(lambda config: reply) as asked:
        assert asked.ask().cost == cost
        assert asked.model.most_cost == 3 * WORST


@pytest.mark.parametrize(
    ("status", "attempts", "cost"),
    [(429, 3, 0.0), (500, 3, 3 * WORST), (None, 3, 3 * WORST), (400, 2, 0.0)],
)
def test_failures_are_named_by_status_and_paid_for_where_it_is_unknown(status, attempts, cost):
    with Asked(lambda config: Failed(status)) as asked:
        asked.model.trusted = True
        kind = "provider error" if status is None else f"http {status}"
        assert asked.ask() == Unanswered(kind, cost)
    assert len(asked) == attempts


def test_a_wrong_key_ends_the_audit():
    message = r"model 'mockllm/model' at .* mockllm: http 401: the key is wrong or missing: no"
    with Asked(lambda config: Failed(401)) as asked, pytest.raises(ModelError, match=message):
        asked.ask()
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("host", "status", "refused"),
    [("api.openai.com", 401, True), ("api.openai.com", 403, False), ("gateway.test", 401, False)],
)
def test_a_key_is_checked_where_that_costs_nothing(host, status, refused):
    class Models:
        async def list(self):
            raise Failed(status)

    client = type("Client", (), {"base_url": f"https://{host}/v1", "models": Models()})()
    with Asked() as asked:
        asked.model._model.api.client = client
        with pytest.raises(ModelError, match="http 401") if refused else nullcontext():
            asked.model.check_key()
    assert not asked


def test_the_same_question_twice_is_two_calls_though_inspect_may_keep_answers(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path))
    with Asked() as asked:
        assert [asked.ask().cost, asked.ask().cost] == [30.0, 30.0]
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cache": True}, "model.options: expected no cache, which an audit sets$"),
        ({"max_retries": 9}, "expected no max_retries, which an audit sets; retries in"),
        ({"temprature": 0}, "unknown option 'temprature'; did you mean 'temperature'"),
        ({"temperature": "hot"}, "model.options.temperature: Input should be a valid number"),
    ],
)
def test_options_that_would_cost_unseen_or_are_none_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        InspectModel("mockllm/model", options=options)


def test_models_that_inspect_does_not_make_are_named(monkeypatch):
    monkeypatch.delenv("NOBODY_API_KEY", raising=False)
    messages = {"nobody/m": "Model API nobody .* not recognized"}
    messages["openai-api/nobody/m"] = ".*NOBODY_API_KEY"
    for name, message in messages.items():
        with pytest.raises(InputError, match=f"Inspect makes no '{name}': {message}") as raised:
            InspectModel(name)
        assert "[bold]" not in str(raised.value)
    with pytest.raises(InputError, match="expected the key in the environment variable NOBODY_API"):
        InspectModel("mockllm/model", key="NOBODY_API_KEY")


def test_keys_around_are_kept_out_of_answers_and_errors(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "planted-secret")
    quiz = Prompt(ASK.image, ("organ",), "s1", "identity", 0, (Ask("Which?"),))
    with Asked(lambda config: output("it is planted-secret")) as asked:
        assert asked.ask(quiz) == Answer(("it is [key]",), 30.0)
    with (
        Asked(lambda config: Failed(403, "planted-secret is wrong")) as asked,
        pytest.raises(ModelError, match=r"\[key\] is wrong"),
    ):
        asked.ask()


@pytest.fixture
def keys(monkeypatch):
    for name in ("DEMO_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "planted-secret")


def through(name, url, **options):
    """A model behind the demo's server, by Inspect's OpenAI-compatible or Anthropic provider."""
    root = "" if name.startswith("anthropic") else "/v1"
    waits = Retries(times=2, timeout=20.0, first_wait=0.001)
    given = {"max_tokens": 64, "max_input_tokens": 600, "retries": waits, **options}
    return InspectModel(name, base_url=f"{url}{root}", prices=PRICES, **given)


PROVIDERS = ("openai-api/demo/demo-endoscopist", "anthropic/demo-endoscopist")


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("name", PROVIDERS)
def test_every_request_that_a_server_sees_is_an_attempt_that_is_counted(name):
    prompts = [Prompt(frame(k), ("polyp",), f"f{k}", "identity", 0) for k in range(6)]
    faults = Behaviour(broken=0.2, limited=0.2, truncated=0.3, retry_after=0.0)
    with demo_server(FRAMES, faults) as server, closing(through(name, server.url)) as model:
        answers = model.ask(prompts)
        bill, counts = server.statistics, model.statistics()
    assert any(isinstance(answer, Answer) for answer in answers)
    assert bill.broken + bill.limited + bill.truncated > 0
    assert counts["attempts"] == bill.requests
    sent = bill.prompt_tokens + bill.unseen_prompt_tokens
    answered = bill.completion_tokens + bill.unseen_completion_tokens
    assert sum(answer.cost for answer in answers) >= PRICES.cost(Usage(sent, answered))


@pytest.mark.slow
@pytest.mark.usefixtures("keys")
def test_the_bundled_spec_runs_and_bills_what_the_server_does(tmp_path):
    with demo_server(DemoModel(FRAMES.concepts)) as server:
        spec = copied(
            "inspect.toml",
            tmp_path,
            count=("count = 200", "count = 8"),
            size=("size = 256", "size = 96"),
            url=('# url = "http://127.0.0.1:8008/v1"', f'url = "{server.url}/v1"'),
            key=('# key = "OPENAI_API_KEY"', 'key = "DEMO_API_KEY"'),
            model=('"openai/gpt-4o-mini"', f'"openai-api/demo/{server.model}"'),
            relations=('["identity", "medtest"]', '["identity", "gaussian_noise"]'),
        )
        out = audited(spec, budget=10)
        bill = server.statistics
    result = json.loads((out / "result.json").read_text())
    assert bill.answered == result["calls"] == 10
    tokens = bill.prompt_tokens * 0.15 + bill.completion_tokens * 0.6
    assert result["cost"] == pytest.approx(tokens / 1e6)
    assert b"planted-secret" not in (out / "journal.db").read_bytes()
