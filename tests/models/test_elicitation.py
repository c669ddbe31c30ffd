"""A server that does not give what it is asked for: noticed, named once, paid for and kept."""

import json
from contextlib import closing, contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.journal.facts import WayFacts
from adaptive_vtt.models import OpenAIBatch, OpenAIChat, Prices, Retries
from adaptive_vtt.models.network.elicitation import Elicitation
from adaptive_vtt.relations import resolve
from adaptive_vtt.types import Answer
from tests.helpers.batch_service import BatchService
from tests.helpers.endpoint import DemoModel, demo_server
from tests.helpers.loopback import Replies, serving
from tests.helpers.served import FRAMES
from tests.models.test_openai_chat import ASK, ONE, completion, token

PRICE, PRICES = 1.0, Prices(per_call=1.0)
SURE = completion("Yes", logprobs={"content": [token("Yes", Yes=0.8, No=0.2)]})
LIKELY = Answer((pytest.approx(0.8),), PRICE)


@contextmanager
def asked(reply, batch=False, **options):
    """A model, one by one or in batches, and the requests that its server saw."""

    async def no_wait(_):
        pass

    options = {"prices": PRICES, "sleep": no_wait, **options}
    options.setdefault("retries", Retries(times=2, timeout=10.0))
    if batch:
        options |= {"poll_seconds": 0.001, "batch_factor": 1.0}
    kind, server = OpenAIBatch if batch else OpenAIChat, Replies(reply)
    with (
        serving(BatchService(server) if batch else server) as url,
        closing(kind("m", base_url=f"{url}/v1", **options)) as model,
    ):
        yield model, server.saw


def schema_only(request):
    """Ignores log-probabilities, as older versions of Ollama do."""
    structured = "response_format" in request
    return completion('{"probability": 0.3}' if structured else "Yes")


WORDS_ONLY = completion("Yes")
HARD = completion("Yes", logprobs={"content": [token("Yes")]})
"""Log-probabilities without alternatives: every reply is certain."""
EMPTY = completion("Yes", logprobs={"content": None, "refusal": None})


@pytest.mark.parametrize(
    ("reply", "value", "calls", "batch"),
    [
        (schema_only, 0.3, 2, False),
        (WORDS_ONLY, 1.0, 3, True),
        (HARD, 1.0, 3, False),
        (EMPTY, 1.0, 3, False),
    ],
)
def test_what_did_not_come_is_asked_for_in_another_mode_and_paid_for(reply, value, calls, batch):
    with asked(reply, batch) as (model, seen):
        assert model.ask([ONE]) == [Answer((value,), calls * PRICE)]
        assert model.ask([ONE]) == [Answer((value,), PRICE)]
        instead = model.elicitation()[""].instead
    missing = {"logprobs": "missing", "structured": "missing"}
    assert instead == dict([*missing.items()][: calls - 1])
    assert len(seen) == calls + 1
    kinds = {"no log-probabilities": 1, "no structured output": 1}
    assert model.statistics()["failures"] == dict([*kinds.items()][: calls - 1])


def fussy(*refused):
    """A server that refuses requests with certain fields."""

    def reply(request):
        for name in refused:
            if name in request:
                return 400, {"error": {"message": f"unknown field {name}", "code": None}}
        structured = "response_format" in request
        return completion('{"probability": 0.3}' if structured else "no")

    return reply


@pytest.mark.parametrize(
    ("refused", "value", "requests", "batch"),
    [
        (("logprobs",), 0.3, 3, False),
        (("logprobs", "response_format"), 0.0, 4, False),
        (("logprobs", "response_format"), 0.0, 4, True),
    ],
)
def test_a_server_that_refuses_one_mode_is_asked_in_the_next_at_no_cost(
    refused, value, requests, batch
):
    with asked(fussy(*refused), batch) as (model, seen):
        assert model.ask([ONE]) == [Answer((value,), PRICE)]
        assert model.statistics()["failures"] == {}
    assert len(seen) == requests  # 20 log-probabilities, 5, a schema, words


def test_five_log_probabilities_are_asked_for_where_twenty_are_refused():
    refusal = 400, {"error": {"message": "greater than max allowed: 5"}}
    reply = lambda request: refusal if request.get("top_logprobs", 0) > 5 else SURE  # noqa: E731
    with asked(reply) as (model, seen):
        assert model.ask([ONE, ONE]) == [LIKELY] * 2
    assert [one["top_logprobs"] for one in seen] == [20, 5, 5]
    assert model.statistics()["yes_from"] == "logprobs"


def test_one_call_decides_and_the_others_wait_for_it():
    with asked(WORDS_ONLY) as (model, seen):
        assert len(set(model.ask([ONE] * 8))) == 2
    assert len(seen) == 2 + 8  # two replies were in vain, not two of each call
    with asked(WORDS_ONLY) as (model, seen):
        model.ask([ASK] * 3)
        assert model.elicitation() == {}  # questions in words decide nothing, and wait for nobody
    assert len(seen) == 3


@pytest.mark.parametrize("batch", [False, True])
def test_without_a_further_attempt_the_reply_counts_unchanged(batch):
    with asked(WORDS_ONLY, batch, retries=Retries(times=0)) as (model, seen):
        assert model.ask([ONE]) == model.ask([ONE]) == [Answer((1.0,), PRICE)]
    assert "response_format" in seen[1]


def test_a_request_refused_in_every_mode_that_is_allowed_is_quoted():
    with (
        asked(fussy("logprobs"), yes_from="logprobs") as (model, _),
        pytest.raises(ModelError, match="http 400: unknown field logprobs"),
    ):
        model.ask([ONE])
    assert model.elicitation() == {}  # nothing is left out that was not at fault


@pytest.mark.parametrize(
    ("name", "message", "status", "batch"),
    [
        ("temperature", "{name} is not taken", 400, False),
        ("temperature", "bad request", 422, True),
        ("temperature", "bad request", 403, False),
        ("max_tokens", "{name} is not taken", 404, True),
        ("max_tokens", "bad request", 501, False),
        ("max_tokens", "bad request", 400, True),
        ("seed", "{name} is not taken", 415, False),
        ("seed", "bad request", 404, False),
    ],
)
def test_an_option_that_is_refused_is_left_out_at_no_cost_and_kept_so(name, message, status, batch):
    refusal = status, {"error": {"message": message.format(name=name)}}
    reply = lambda request: refusal if name in request else SURE  # noqa: E731
    options = {"options": {"temperature": 0, "seed": 3}}
    with asked(reply, batch, **options) as (model, seen):
        assert model.ask([ONE, ASK]) == [LIKELY, Answer(("Yes",), PRICE)]
        kept = model.elicitation()[""]
        assert name in kept.without
        assert kept.yes_from == "logprobs"
    assert len(seen) <= (14 if batch else 8)
    assert ("max_completion_tokens" in seen[-1]) == ("max_tokens" in kept.without)
    with asked(reply, **options) as (again, seen):
        again.keep_to({"": kept})
        again.ask([ONE])
    assert len(seen) == 1


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_key_or_a_model_that_is_wrong_stays_wrong(status):
    with (
        asked(lambda _: (status, {"error": {"message": "no"}})) as (model, seen),
        pytest.raises(ModelError, match=f"http {status}: "),
    ):
        model.ask([ONE])
    assert len(seen) <= (1 if status == 401 else 8)
    assert model.statistics()["cost"] == 0


def test_a_server_that_refuses_png_is_sent_jpeg():
    refusal = 400, {"error": {"message": "unsupported image format: image/png"}}
    reply = lambda request: refusal if "image/png" in json.dumps(request) else SURE  # noqa: E731
    with asked(reply) as (model, seen):
        assert model.ask([ONE]) == [LIKELY]
        assert model.elicitation()[""].without == ("image_format",)
    assert len(seen) == 2


def test_the_only_mode_that_was_allowed_is_kept_and_its_lack_is_shown():
    with asked(WORDS_ONLY, yes_from="logprobs") as (model, seen):
        assert model.ask([ONE, ONE]) == [Answer((1.0,), PRICE)] * 2
        assert model.elicitation() == {"": WayFacts(yes_from="logprobs", partly=True)}
    assert len(seen) == 2


# -- the same, in an audit -----------------------------------------------------------------


def test_a_resumed_audit_keeps_its_mode_and_warns_once(tmp_path):
    space = QuestionSpace(FRAMES, resolve(["identity", "gaussian_noise"]))
    journal = tmp_path / "journal.db"

    def audit(budget, **options):
        model = OpenAIChat("demo-endoscopist", base_url=url, prices=PRICES, **options)
        goal = {"strategy": "random", "surrogate": False, "seed": 1}
        with closing(model), Audit(space, model, journal=journal, budget=budget, **goal) as audit:
            return audit.run()

    with demo_server(DemoModel(FRAMES.concepts, seed=1), like="ollama") as server:
        url = f"{server.url}/v1"
        first = audit(6)
        assert server.statistics.answered == 6 + 1
        assert first.cost == 7 * PRICE  # the call in vain is booked
        second = audit(9)
        assert server.statistics.answered == 9 + 1  # nothing was tried in vain again
        with pytest.raises(InputError, match="asked before, 'structured', got 'words'"):
            audit(12, yes_from="words")
    for result in (first, second):
        assert [w for w in result.warnings if "log-probabilities" in w] == [
            "the server ignores log-probabilities, so P(yes) comes from the number that the "
            "model states in an enforced form"
        ]


# -- any order in which replies come -------------------------------------------------------


EVENTS = st.tuples(st.sampled_from("abc"), st.sampled_from(["works", "refused", "missing"]))


@settings(max_examples=40)
@given(st.lists(EVENTS))
def test_whatever_comes_there_is_a_mode_and_one_that_worked_stays(events):
    modes, settled = Elicitation(("a", "b", "c")), None
    for mode, event in events:
        if event == "works" and mode == modes.now:
            modes.works(mode)
            settled = settled or mode
        elif event != "works":
            again = modes.fall_back(mode, event)
            assert not again or modes.now != mode  # nothing is asked twice in the same mode
        assert modes.now in "abc"
        assert settled is None or modes.now == settled
    facts = modes.facts()
    if facts is not None and modes.settled:
        other = Elicitation(("a", "b", "c"))
        other.keep_to(facts)
        assert (other.now, other.facts()) == (modes.now, facts)
