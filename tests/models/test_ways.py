"""A server that does not give what it is asked for: it is noticed, said once, paid for and kept."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.journal.facts import WayFacts
from adaptive_vtt.models import OpenAIBatch, OpenAIChat, Prices, Retries
from adaptive_vtt.models.network.chat import ChatEndpoint
from adaptive_vtt.models.network.elicitation import Elicitation
from adaptive_vtt.relations import resolve
from adaptive_vtt.types import Answer
from tests.helpers.batch_service import BatchService
from tests.helpers.endpoint import DemoModel, demo_server
from tests.helpers.loopback import Replies, serving
from tests.helpers.served import FRAMES
from tests.models.test_openai_chat import ASK, ONE, completion, token

PRICE, PRICES = 1.0, Prices(per_call=1.0)
Replying = Callable[[dict[str, Any]], Any]


def test_a_provider_that_lacks_a_part_fails_when_it_is_made() -> None:
    class Half(ChatEndpoint):
        """Says nothing of what a provider says."""

    with pytest.raises(TypeError, match=r"abstract .*asking.*created.*image_part.*own_key"):
        Half("m")


@contextmanager
def asked(reply: Replying, batch: bool = False, **options: Any) -> Iterator[tuple[Any, list[Any]]]:
    """A model, one by one or in batches, and the requests that its server saw."""

    async def no_wait(_: float) -> None:
        pass

    given: dict[str, Any] = {"prices": PRICES, "sleep": no_wait, **options}
    given.setdefault("retries", Retries(times=2, timeout=10.0))
    if batch:
        given |= {"poll_seconds": 0.001, "batch_factor": 1.0}
    kind, server = OpenAIBatch if batch else OpenAIChat, Replies(reply)
    with (
        serving(BatchService(server) if batch else server) as url,
        closing(kind("m", base_url=f"{url}/v1", **given)) as model,
    ):
        yield model, server.saw


def schema_only(request: dict[str, Any]) -> Any:
    """Passes over log-probabilities, as older versions of Ollama do."""
    structured = "response_format" in request
    return completion('{"probability": 0.3}' if structured else "Yes")


def words_only(request: dict[str, Any]) -> Any:
    return completion("Yes")


def hard(request: dict[str, Any]) -> Any:
    """Log-probabilities without alternatives: all that is said is certain."""
    return completion("Yes", logprobs={"content": [token("Yes")]})


def empty(request: dict[str, Any]) -> Any:
    return completion("Yes", logprobs={"content": None, "refusal": None})


@pytest.mark.parametrize(
    ("reply", "value", "calls", "found", "batch"),
    [
        (schema_only, 0.3, 2, {"logprobs": "missing"}, False),
        (words_only, 1.0, 3, {"logprobs": "missing", "structured": "missing"}, True),
        (hard, 1.0, 3, {"logprobs": "missing", "structured": "missing"}, False),
        (empty, 1.0, 3, {"logprobs": "missing", "structured": "missing"}, False),
    ],
)
def test_what_did_not_come_is_asked_for_in_another_way_and_paid_for(
    reply: Replying, value: float, calls: int, found: Any, batch: bool
):
    with asked(reply, batch) as (model, seen):
        first = model.ask([ONE])
        again = model.ask([ONE])
        assert model.elicitation()[""].instead == found
    assert first == [Answer((value,), calls * PRICE)]
    assert again == [Answer((value,), PRICE)]
    assert len(seen) == calls + 1
    missing = {"no log-probabilities": 1, "no structured output": 1}
    assert model.statistics()["failures"] == dict([*missing.items()][: calls - 1])


def fussy(*refused: str) -> Replying:
    """A server that refuses requests with certain fields."""

    def reply(request: dict[str, Any]) -> Any:
        for name in refused:
            if name in request:
                return 400, {"error": {"message": f"unknown field {name}", "code": None}}
        structured = "response_format" in request
        return completion('{"probability": 0.3}' if structured else "no")

    return reply


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(
    ("refused", "value", "requests"),
    [(("logprobs",), 0.3, 3), (("logprobs", "response_format"), 0.0, 4)],
)
def test_a_server_that_refuses_one_way_is_asked_in_the_next_at_no_cost(
    refused: tuple[str, ...], value: float, requests: int, batch: bool
):
    with asked(fussy(*refused), batch) as (model, seen):
        assert model.ask([ONE]) == [Answer((value,), PRICE)]
        assert model.statistics()["failures"] == {}
    assert len(seen) == requests  # 20 log-probabilities, 5, a schema, words


def test_five_log_probabilities_are_asked_for_where_twenty_are_refused():
    def reply(request: dict[str, Any]) -> Any:
        if request.get("top_logprobs", 0) > 5:
            return 400, {"error": {"message": "greater than max allowed: 5"}}
        return completion("Yes", logprobs={"content": [token("Yes", Yes=0.8, No=0.2)]})

    with asked(reply) as (model, seen):
        assert model.ask([ONE, ONE]) == [Answer((pytest.approx(0.8),), PRICE)] * 2  # type: ignore[arg-type]
    assert [one["top_logprobs"] for one in seen] == [20, 5, 5]
    assert model.statistics()["yes_from"] == "logprobs"


def test_one_call_finds_out_and_the_others_wait_for_it():
    with asked(words_only) as (model, seen):
        assert len(set(model.ask([ONE] * 8))) == 2
    assert len(seen) == 2 + 8  # two replies were in vain, not two of each call
    with asked(words_only) as (model, seen):
        model.ask([ASK] * 3)
        assert model.elicitation() == {}  # questions in words tell nothing, and wait for nobody
    assert len(seen) == 3


def test_without_a_further_attempt_the_reply_counts_as_it_is():
    with asked(words_only, retries=Retries(times=0)) as (model, seen):
        assert model.ask([ONE]) == [Answer((1.0,), PRICE)]
        assert model.ask([ONE]) == [Answer((1.0,), PRICE)]
        assert "structured" in json.dumps(seen[1]) or "response_format" in seen[1]
    with asked(words_only, batch=True, retries=Retries(times=0)) as (model, _):
        assert model.ask([ONE]) == [Answer((1.0,), PRICE)]


def test_a_request_refused_in_every_way_that_is_allowed_is_quoted():
    with (
        asked(fussy("logprobs"), yes_from="logprobs") as (model, _),
        pytest.raises(ModelError, match="http 400: unknown field logprobs"),
    ):
        model.ask([ONE])
    assert model.elicitation() == {}  # nothing is left out that was not at fault


@pytest.mark.parametrize(
    ("name", "words", "status", "batch"),
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
def test_an_option_that_is_refused_is_left_out_at_no_cost_and_kept_so(
    name: str, words: str, status: int, batch: bool
):
    def reply(request: dict[str, Any]) -> Any:
        if name in request:
            return status, {"error": {"message": words.format(name=name)}}
        return completion("Yes", logprobs={"content": [token("Yes", Yes=0.8, No=0.2)]})

    options = {"options": {"temperature": 0, "seed": 3}}
    with asked(reply, batch, **options) as (model, seen):
        assert model.ask([ONE, ASK]) == [
            Answer((pytest.approx(0.8),), PRICE),
            Answer(("Yes",), PRICE),
        ]
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
def test_a_key_or_a_model_that_is_wrong_stays_wrong(status: int):
    with (
        asked(lambda _: (status, {"error": {"message": "no"}})) as (model, seen),
        pytest.raises(ModelError, match=f"http {status}: "),
    ):
        model.ask([ONE])
    assert len(seen) <= (1 if status == 401 else 8)
    assert model.statistics()["cost"] == 0


def test_a_server_that_refuses_png_is_sent_jpeg():
    def reply(request: dict[str, Any]) -> Any:
        if "image/png" in json.dumps(request):
            return 400, {"error": {"message": "unsupported image format: image/png"}}
        return completion("Yes", logprobs={"content": [token("Yes", Yes=0.8, No=0.2)]})

    with asked(reply) as (model, seen):
        assert isinstance(model.ask([ONE])[0], Answer)
        assert model.elicitation()[""].without == ("image_format",)
    assert len(seen) == 2


def test_the_only_way_that_was_allowed_is_kept_and_its_lack_is_said():
    with asked(words_only, yes_from="logprobs") as (model, seen):
        assert model.ask([ONE, ONE]) == [Answer((1.0,), PRICE)] * 2
        assert model.elicitation() == {"": WayFacts(yes_from="logprobs", partly=True)}
    assert len(seen) == 2


# -- the same, in an audit -----------------------------------------------------------------


SPACE = QuestionSpace(FRAMES, resolve(["identity", "gaussian_noise"]))
FAKE = DemoModel(FRAMES.concepts, seed=1)
GOAL: dict[str, Any] = {"half_width": 0.05, "seed": 1}


def audit(url: str, journal: Path, budget: int) -> Any:
    model = OpenAIChat("demo-endoscopist", base_url=url, prices=PRICES, retries=Retries(times=2))
    with closing(model), Audit(SPACE, model, journal=journal, budget=budget, **GOAL) as running:
        return running.run()


@pytest.mark.slow
def test_an_audit_says_so_once_and_goes_on_in_the_same_way(tmp_path: Path):
    with demo_server(FAKE, like="ollama") as server:
        url = f"{server.url}/v1"
        begun = audit(url, tmp_path / "journal.db", 12)
        assert server.statistics.answered == 12 + 1
        assert begun.cost == 13 * PRICE  # the call in vain is booked
        resumed = audit(url, tmp_path / "journal.db", 20)
        assert server.statistics.answered == 20 + 1  # nothing was tried in vain again
    said = [w for w in resumed.warnings if "log-probabilities" in w]
    assert said == [w for w in begun.warnings if "log-probabilities" in w]
    assert said == [
        "the server passes over log-probabilities, so P(yes) comes from the number that the model "
        "states in an enforced form"
    ]


def test_an_audit_asked_in_one_way_cannot_go_on_in_another(tmp_path: Path):
    with demo_server(FAKE, like="ollama") as server:
        url = f"{server.url}/v1"
        audit(url, tmp_path / "journal.db", 6)
        with (
            closing(OpenAIChat("demo-endoscopist", base_url=url, yes_from="words")) as model,
            pytest.raises(InputError, match="asked before, 'structured', got 'words'"),
        ):
            Audit(SPACE, model, journal=tmp_path / "journal.db", budget=9, **GOAL)


# -- any order in which replies come -------------------------------------------------------


EVENTS = st.tuples(st.sampled_from("abc"), st.sampled_from(["works", "refused", "missing"]))


@given(st.lists(EVENTS))
def test_whatever_comes_there_is_a_way_and_one_that_worked_stays(events: list[tuple[str, str]]):
    ways, found = Elicitation(("a", "b", "c")), None
    for way, what in events:
        if what == "works" and way == ways.now:
            ways.works(way)
            found = found or way
        elif what != "works":
            again = ways.gives_way(way, what)  # type: ignore[arg-type]
            assert not again or ways.now != way  # nothing is asked twice in the same way
        assert ways.now in "abc"
        assert found is None or ways.now == found
    facts = ways.facts()
    if facts is not None and ways.settled:
        other = Elicitation(("a", "b", "c"))
        other.keep_to(facts)
        assert (other.now, other.facts()) == (ways.now, facts)
