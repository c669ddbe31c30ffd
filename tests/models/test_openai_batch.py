"""Chat models in batches: what goes through the openai library, and how results are read."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.journal.facts import BatchFacts
from adaptive_vtt.models import OpenAIBatch, Prices, Retries
from adaptive_vtt.models.network.batches import Unkept
from adaptive_vtt.types import Answer, Unanswered
from tests.helpers.batch_service import BatchService
from tests.helpers.loopback import Replies, Said, serving
from tests.models.test_openai_chat import ONE, completion, token

YES = completion("Yes", logprobs={"content": [token("Yes", Yes=0.8, No=0.2)]})
PRICES = Prices(input=2.0, output=1.0, tokens=100)
USED, WORST = (300 * 2 + 20) / 200, (1000 * 2 + 50) / 200
"""What a reply costs by its tokens, and at most, at half the prices."""


@contextmanager
def asked(reply: Any, **options: Any) -> Iterator[tuple[OpenAIBatch, BatchService]]:
    """A model behind a service that replies so, and the service."""

    async def no_wait(_: float) -> None:
        pass

    service = BatchService(Replies(reply))
    given: dict[str, Any] = {
        "prices": PRICES,
        "max_input_tokens": 1000,
        "max_tokens": 50,
        "poll_seconds": 0.001,
        "sleep": no_wait,
        "retries": Retries(times=1, timeout=10.0, give_up_after=3),
        **options,
    }
    with serving(service) as url, closing(OpenAIBatch("m", base_url=f"{url}/v1", **given)) as model:
        yield model, service


def test_a_batch_is_a_file_of_requests_as_they_would_be_sent_one_by_one():
    with asked(YES) as (model, service):
        said = model.ask([ONE, ONE])
    assert [type(one) for one in said] == [Answer, Answer]
    assert said[0].values == pytest.approx((0.8,))  # type: ignore[union-attr]
    assert [one.cost for one in said] == pytest.approx([USED, USED])
    request, _ = service.requests
    assert (request["model"], request["logprobs"], request["max_tokens"]) == ("m", True, 50)
    assert request["messages"][0]["content"][0]["type"] == "image_url"
    assert len(service.batches) == 1
    assert list(service.batches[0]["metadata"]) == ["adaptive_vtt"]


def test_forms_are_those_of_the_journal_where_an_audit_goes_on():
    with asked(YES) as (model, service):
        model.ask([ONE])
        batch = service.batches[0]
        key = batch["metadata"]["adaptive_vtt"]
        sent = BatchFacts(key=key, id=batch["id"], calls=(0,), form="words", at=0)
        record = Unkept()
        record.write([sent])
        assert model.ask_batch({0: ONE}, record) == {0: Answer((1.0,), USED)}
        record.write([sent.model_copy(update={"form": "guesses"})])
        said = model.ask_batch({0: ONE}, record)[0]  # cannot be read, so it is asked again
    assert said.cost == pytest.approx(WORST + USED)


def test_refused_by_the_content_filter_is_an_answer():
    told = {"error": {"message": "no", "code": "content_filter"}}

    def reply(request: dict[str, Any]) -> Any:
        return (400, told)

    with asked(reply, yes_from="words") as (model, service):
        said = model.ask([ONE])
    assert said == [Unanswered("refused: the server's content filter")]
    assert len(service.batches) == 1


@pytest.mark.parametrize(
    ("line", "kind", "cost"),
    [
        ({"error": {"code": "batch_expired", "message": "late"}}, "batch expired", 0.0),
        ({"error": "oh"}, "batch error", 0.0),
        ({"response": {"status_code": 503, "body": "no"}}, "http 503", 2 * WORST),
        ({"response": {"status_code": "200", "body": {}}}, "malformed reply", 2 * WORST),
        ({"response": {"status_code": 200, "body": None}}, "malformed reply", 2 * WORST),
        ({"response": {"status_code": 200, "body": {"usage": 3}}}, "truncated", 2 * WORST),
    ],
)
def test_a_line_that_is_no_reply_is_tried_again_and_paid_as_it_may_be_billed(
    line: dict[str, Any], kind: str, cost: float
):
    with asked(YES) as (model, service):
        store = service.store

        def tampered(data: bytes) -> str:
            lines = [json.loads(one) for one in data.splitlines()]
            if "body" in lines[0]:
                return store(data)
            kept = [{**line, "custom_id": one["custom_id"]} for one in lines]
            return store(b"\n".join(json.dumps(one).encode() for one in kept))

        service.store = tampered  # type: ignore[method-assign]
        assert model.ask([ONE]) == [Unanswered(kind, pytest.approx(cost))]  # type: ignore[arg-type]
    assert len(service.batches) == 2


ENDS: list[tuple[str, Any, str]] = [
    ("POST /v1/files", (401, {}, b'{"error": {"message": "bad key"}}'), "the key is wrong or mis"),
    ("POST /v1/files", (400, {}, b'{"error": {"message": "quota"}}'), "uploading a batch failed"),
    ("POST /v1/batches", (429, {"retry-after": "9999"}, b"{}"), "submitting a batch failed: http"),
    ("POST /v1/batches", (403, {}, b"{}"), "the key is not allowed to do this"),
    (
        "GET /v1/batches/batch_0",
        (404, {}, b"{}"),
        "batch 'batch_0' is gone .http 404: no such .* avtt resume DIR --give-up-batch batch_0 ",
    ),
    ("GET /v1/batches/batch_0", (200, {}, b"[]"), "looking at batch batch_0 failed: malformed"),
    ("GET /v1/batches/batch_0", (200, {}, b'{"id": "batch_0", "status": "gone"}'), "and its stat"),
    ("GET /v1/batches/batch_0", (200, {}, b'{"id": "x", "status": "completed"}'), "expected batch"),
    (
        "GET /v1/batches/batch_0",
        (
            200,
            {},
            b'{"id": "batch_0", "status": "failed", "errors": {"data": [{"message": "no"}]}}',
        ),
        "a batch was not taken: no; nothing of it was billed",
    ),
    (
        "GET /v1/batches/batch_0",
        (200, {}, b'{"id": "batch_0", "status": "completed", "output_file_id": "../x"}'),
        "expected an id, got '../x'",
    ),
    ("GET /v1/files", (503, {}, b"{}"), "reading the results of a batch failed: http 503"),
]


@pytest.mark.parametrize(("where", "said", "message"), ENDS)
def test_exchanges_that_fail_end_the_audit_with_one_sentence(where: str, said: Said, message: str):
    with asked(YES) as (model, service):
        service.instead[where] = said
        with pytest.raises(ModelError, match=message) as caught:
            model.ask([ONE])
        assert "\n" not in str(caught.value)
    assert len(service.batches) <= 1


LOST: list[tuple[str, Said]] = [
    ("GET /v1/files", (404, {}, b"{}")),
    ("GET /v1/files", (200, {}, b"x" * 300_000)),
    ("GET /v1/files", (200, {}, b"")),
    ("GET /v1/files", (200, {}, b"\x00\xff" * 1000)),
]


@pytest.mark.parametrize(("where", "said"), LOST)
def test_results_that_cannot_be_had_count_at_their_worst_price(where: str, said: Said):
    with asked(YES, max_file_bytes=200_000) as (model, service):
        service.instead[where] = said
        assert model.ask([ONE]) == [Unanswered("no result", 2 * WORST)]


@pytest.mark.parametrize("name", [None, "../../v1/keys"])
def test_a_batch_whose_submission_names_no_id_is_looked_for(name: str | None):
    with asked(YES) as (model, service):

        def broken(asked: dict[str, Any], create: Any = service.create) -> dict[str, Any]:
            create(asked)
            return {"id": name}

        service.create = broken  # type: ignore[method-assign]
        assert model.ask([ONE]) == [Answer((pytest.approx(0.8),), USED)]  # type: ignore[arg-type]
    assert len(service.batches) == 1


def test_a_submission_that_was_refused_is_not_looked_for_later():
    record = Unkept()
    with asked(YES) as (model, service):
        service.instead["POST /v1/batches"] = (400, {}, b'{"error": {"message": "no such file"}}')
        service.instead["GET /v1/batches?"] = (404, {}, b"{}")
        with pytest.raises(ModelError, match="no such file"):
            model.ask_batch({0: ONE}, record)
        assert record.read() == ()
        service.instead.clear()
        assert model.ask_batch({0: ONE}, record)[0].cost == pytest.approx(USED)


def test_older_batches_of_others_are_passed_over_page_by_page():
    other = {"id": "batch_x", "created_at": 10**9, "metadata": None}
    with asked(YES) as (model, service):
        pages = iter(range(99))

        def page(told: Any, say: Any = service.say) -> Said:
            if "data" in told:
                new = {**other, "created_at": 2 * 10**9, "id": f"batch_y{next(pages)}"}
                return say({"data": [new] if next(pages) < 6 else [other], "has_more": True})
            return say(told)

        service.say = page  # type: ignore[method-assign]
        service.instead["POST /v1/batches"] = (200, {}, b"{}")
        assert model.ask([ONE]) == [Unanswered("batch lost", 2 * WORST)]


def test_a_batch_that_its_list_hides_is_paid_for_at_its_worst_price():
    """Made, though the server said 500; what is submitted next is another batch."""
    with asked(YES) as (model, service):

        def broken(asked: dict[str, Any], create: Any = service.create) -> dict[str, Any]:
            made = create(asked)
            return {"id": None} if len(service.batches) == 1 else made

        service.create = broken  # type: ignore[method-assign]
        service.instead["GET /v1/batches?"] = (200, {}, b'{"data": [], "has_more": false}')
        (answer,) = model.ask([ONE])
        assert (answer.cost, answer.unconfirmed) == pytest.approx((WORST + USED, WORST))


def test_keys_are_never_shown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SECRET", "sk-very-secret")
    with asked(YES, key="SECRET") as (model, service):
        service.instead["POST /v1/files"] = (400, {}, b'{"error": "Bearer sk-very-secret"}')
        with pytest.raises(ModelError, match=r"Bearer \[key\]"):
            model.ask([ONE])


def test_a_batch_that_no_provider_takes_says_what_to_lower(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("adaptive_vtt.models.network.batches.MAX_BYTES", 900)
    with asked(YES) as (model, _), pytest.raises(InputError, match="lower batch_size, or send ima"):
        model.ask([ONE, ONE])
