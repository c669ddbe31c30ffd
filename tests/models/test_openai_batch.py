"""Chat models in batches: what goes through the openai library, and how results are read."""

import json
from contextlib import closing, contextmanager

import pytest

from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.journal.facts import BatchFacts
from adaptive_vtt.models import OpenAIBatch, Prices, Retries
from adaptive_vtt.types import Answer, Unanswered
from tests.helpers.batch_service import BatchService
from tests.helpers.loopback import Replies, serving
from tests.models.test_openai_chat import ONE, completion, token

YES = completion("Yes", logprobs={"content": [token("Yes", Yes=0.8, No=0.2)]})
PRICES = Prices(input=2.0, output=1.0, tokens=100)
USED, WORST = (300 * 2 + 20) / 200, (1000 * 2 + 50) / 200
"""What a reply costs by its tokens, and at most, at half the prices."""


@contextmanager
def asked(reply, **options):
    """A model behind a service with this reply, and the service."""

    async def no_wait(_):
        pass

    service = BatchService(Replies(reply))
    retries = Retries(times=1, timeout=10.0, give_up_after=3)
    tokens = {"max_input_tokens": 1000, "max_tokens": 50}
    given = {"prices": PRICES, "poll_seconds": 0.001, "sleep": no_wait, "retries": retries}
    options = {**tokens, **given, **options}
    with serving(service) as url, closing(OpenAIBatch("m", base_url=f"{url}/v1", **options)) as m:
        yield m, service


class Memory:
    """A record of batches."""

    def __init__(self, *batches):
        self.batches = batches

    def read(self):
        return self.batches

    def write(self, batches):
        self.batches = tuple(batches)


def test_a_batch_is_a_file_of_requests_as_they_would_be_sent_one_by_one():
    with asked(YES) as (model, service):
        answers = model.ask([ONE, ONE])
    assert answers == [Answer((pytest.approx(0.8),), USED)] * 2
    request, _ = service.requests
    assert (request["model"], request["logprobs"], request["max_tokens"]) == ("m", True, 50)
    assert request["messages"][0]["content"][0]["type"] == "image_url"
    assert [[*batch["metadata"]] for batch in service.batches] == [["adaptive_vtt"]]


def test_results_are_read_by_the_form_in_the_journal():
    with asked(YES) as (model, service):
        model.ask([ONE])
        batch = service.batches[0]
        key = batch["metadata"]["adaptive_vtt"]
        sent = BatchFacts(key=key, id=batch["id"], calls=(0,), form="words", at=0)
        assert model.ask_batch({0: ONE}, Memory(sent)) == {0: Answer((1.0,), USED)}
        unknown = Memory(sent.model_copy(update={"form": "guesses"}))
        assert model.ask_batch({0: ONE}, unknown)[0].cost == pytest.approx(WORST + USED)


def test_a_refusal_by_the_content_filter_is_an_answer():
    refusal = 400, {"error": {"message": "no", "code": "content_filter"}}
    with asked(lambda request: refusal, yes_from="words") as (model, service):
        assert model.ask([ONE]) == [Unanswered("refused: the server's content filter")]
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
def test_a_line_that_is_no_reply_is_tried_again_and_paid_as_it_may_be_billed(line, kind, cost):
    with asked(YES) as (model, service):
        store = service.store

        def tampered(data):
            lines = [json.loads(one) for one in data.splitlines()]
            if "body" in lines[0]:
                return store(data)
            kept = [{**line, "custom_id": one["custom_id"]} for one in lines]
            return store(b"\n".join(json.dumps(one).encode() for one in kept))

        service.store = tampered
        assert model.ask([ONE]) == [Unanswered(kind, pytest.approx(cost))]
    assert len(service.batches) == 2


FILES, BATCHES, LOOK = "POST /v1/files", "POST /v1/batches", "GET /v1/batches/batch_0"
FAILED = b'{"id": "batch_0", "status": "failed", "errors": {"data": [{"message": "no"}]}}'
OUTSIDE = b'{"id": "batch_0", "status": "completed", "output_file_id": "../x"}'


@pytest.mark.parametrize(
    ("where", "status", "body", "message"),
    [
        (FILES, 401, b'{"error": {"message": "bad key"}}', "the key is wrong or mis"),
        (FILES, 400, b'{"error": {"message": "quota"}}', "uploading a batch failed"),
        (BATCHES, 429, b"{}", "submitting a batch failed: http"),
        (BATCHES, 403, b"{}", "the key is not allowed to do this"),
        (LOOK, 404, b"{}", "batch 'batch_0' is gone .* avtt resume DIR --give-up-batch batch_0 "),
        (LOOK, 200, b"[]", "looking at batch batch_0 failed: malformed"),
        (LOOK, 200, b'{"id": "batch_0", "status": "gone"}', "and its status"),
        (LOOK, 200, b'{"id": "x", "status": "completed"}', "expected batch"),
        (LOOK, 200, FAILED, "a batch was not taken: no; nothing of it was billed"),
        (LOOK, 200, OUTSIDE, "expected an id, got '../x'"),
        ("GET /v1/files", 503, b"{}", "reading the results of a batch failed: http 503"),
    ],
)
def test_exchanges_that_fail_end_the_audit_with_one_sentence(where, status, body, message):
    with asked(YES) as (model, service):
        service.instead[where] = (status, {"retry-after": "9999"} if status == 429 else {}, body)
        with pytest.raises(ModelError, match=message) as caught:
            model.ask([ONE])
        assert "\n" not in str(caught.value)
    assert len(service.batches) <= 1


@pytest.mark.parametrize(
    "reply",
    [(404, {}, b"{}"), (200, {}, b"x" * 300_000), (200, {}, b""), (200, {}, b"\x00\xff" * 1000)],
)
def test_results_that_never_come_count_at_their_worst_price(reply):
    with asked(YES, max_file_bytes=200_000) as (model, service):
        service.instead["GET /v1/files"] = reply
        assert model.ask([ONE]) == [Unanswered("no result", 2 * WORST)]


@pytest.mark.parametrize("name", [None, "../../v1/keys"])
def test_a_batch_whose_submission_names_no_id_is_looked_for(name):
    with asked(YES) as (model, service):

        def broken(request, create=service.create):
            create(request)
            return {"id": name}

        service.create = broken
        assert model.ask([ONE]) == [Answer((pytest.approx(0.8),), USED)]
    assert len(service.batches) == 1


def test_a_batch_that_its_list_hides_is_paid_for_at_its_worst_price():
    """Made, though the reply has no id; what is submitted next is another batch."""
    with asked(YES) as (model, service):

        def broken(request, create=service.create):
            made = create(request)
            return {"id": None} if len(service.batches) == 1 else made

        service.create = broken
        service.instead["GET /v1/batches?"] = (200, {}, b'{"data": [], "has_more": false}')
        (answer,) = model.ask([ONE])
    assert (answer.cost, answer.unconfirmed) == pytest.approx((WORST + USED, WORST))


def test_a_submission_that_was_refused_is_not_looked_for_later():
    record = Memory()
    with asked(YES) as (model, service):
        service.instead[BATCHES] = (400, {}, b'{"error": {"message": "no such file"}}')
        service.instead["GET /v1/batches?"] = (404, {}, b"{}")
        with pytest.raises(ModelError, match="no such file"):
            model.ask_batch({0: ONE}, record)
        assert record.read() == ()
        service.instead.clear()
        assert model.ask_batch({0: ONE}, record)[0].cost == pytest.approx(USED)


def test_older_batches_of_others_are_skipped_page_by_page():
    other = {"id": "batch_x", "created_at": 10**9, "metadata": None}
    with asked(YES) as (model, service):
        pages = iter(range(99))

        def page(body, say=service.reply):
            if "data" in body:
                new = {**other, "created_at": 2 * 10**9, "id": f"batch_y{next(pages)}"}
                return say({"data": [new] if next(pages) < 6 else [other], "has_more": True})
            return say(body)

        service.reply = page
        service.instead[BATCHES] = (200, {}, b"{}")
        assert model.ask([ONE]) == [Unanswered("batch lost", 2 * WORST)]


def test_a_batch_that_is_too_large_names_the_option_to_lower(monkeypatch):
    monkeypatch.setattr("adaptive_vtt.models.network.batches.MAX_BYTES", 900)
    with asked(YES) as (model, _), pytest.raises(InputError, match="lower batch_size, or send ima"):
        model.ask([ONE, ONE])
