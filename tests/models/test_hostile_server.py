"""Servers that reply whatever harms: the audit continues, pays at most the worst, stays small."""

import gzip
import json
import threading
import tracemalloc
from collections import Counter
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt import Audit
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.journal.answer_json import to_json
from adaptive_vtt.models import Answer, Limits, Prices, Prompt, Retries, Unanswered
from adaptive_vtt.models.checking import checked
from adaptive_vtt.models.network.http import parsed
from adaptive_vtt.types import Ask
from tests.campaigns import resilience_server
from tests.campaigns.resilience_server import ATTACKS, origins
from tests.helpers.hostile import (
    COUNTED,
    GOOD,
    LESS_DEEP,
    PLAIN,
    PROMPT,
    WORST,
    ask,
    chat,
    completion,
    http,
    json_reply,
    space,
    tensors,
)
from tests.helpers.loopback import serving
from tests.helpers.twins import slowly

MAKERS = pytest.mark.parametrize("make", [chat, *slowly(http)], ids=["openai", "http"])
MB = 2**20


# -- every attack of the campaign ------------------------------------------------------------


@pytest.fixture
def attacker():
    servers = origins()
    for each in servers:
        threading.Thread(target=each.serve_forever, args=(0.05,), daemon=True).start()
    yield servers[0]
    for each in servers:
        each.shutdown()
        each.server_close()


@MAKERS
def test_an_attack_costs_the_worst_at_most_and_ends_no_audit_that_has_answers(
    make, attacker, monkeypatch
):
    monkeypatch.setattr(resilience_server, "BOMB", 2**22)
    url = f"{attacker.url}/v1" if make is chat else f"{attacker.url}/predict"
    own = {} if make is chat else {"response": "scores.0"}
    patience = Retries(times=1, timeout=0.3, first_wait=1e-3, give_up_after=10**6)
    model = make(url, max_reply_bytes=MB, retries=patience, **own)
    images = (np.full((6, 4, 3), level, np.uint8) for level in range(256))
    attacked = honest = None
    while attacked is None or honest is None:  # which of the two a request meets hangs on its body
        prompt, before = replace(PROMPT, image=next(images)), attacker.counts["attacked"]
        checked(model, [prompt])
        if attacker.counts["attacked"] > before:
            attacked = prompt
        else:
            honest = prompt
    for attack in ATTACKS:
        attacker.attack = attack
        try:
            (answer,) = checked(model, [attacked])
        except ModelError:
            assert attack.hopeless, attack.name
        else:
            assert 0 <= answer.cost <= model.most_cost, attack.name
    assert isinstance(checked(model, [honest])[0], Answer)
    assert attacker.counts["followed"] == 0
    model.close()


# -- malformed replies -----------------------------------------------------------------------


def test_audits_continue_past_malformed_replies_and_report_them():
    costs = {completion([None]): COUNTED, b"[1]": WORST, LESS_DEEP: WORST}
    given: list[bytes] = []

    def answer(path, headers, body):
        if b"apple" in body:
            return json_reply(GOOD)
        given.append([*costs][len(given) % len(costs)])
        return json_reply(given[-1])

    with (
        serving(answer) as url,
        closing(chat(url, limits=Limits(in_flight=3))) as model,
        Audit(space(), model, **PLAIN, max_cost=1e6, fail_on_error=1) as audit,
    ):
        result = audit.run()
        failures = audit.journal.facts()["endpoint"]["failures"]
        reasons = Counter(call.answers[0].unanswered for call in audit.journal.calls())
        assert audit.interrupted == 0
    assert result.calls == 24
    assert reasons == {None: 12, "malformed reply": 12}
    assert failures == {"malformed reply": 24} == {"malformed reply": len(given)}
    assert result.cost == model.statistics()["cost"] == audit.cost
    assert result.cost == 12 * COUNTED + sum(map(costs.__getitem__, given))


def test_a_server_without_a_sound_reply_is_not_taken_for_one_that_is_down():
    with serving(lambda *_: json_reply(completion(None))) as url:
        model = chat(url, retries=Retries(times=0, give_up_after=3))
        with Audit(space(), model, strategy="random", fail_on_error=1) as audit:
            assert audit.run().calls == 24
            assert audit.cost == 24 * COUNTED
        model.close()


def test_logits_are_malformed_replies_that_nobody_asks_for_again():
    steps = [{"p": 3.5}, {"p": 0.5}, {"p": 3.5}]
    with serving(lambda *_: json_reply(steps.pop())) as url, closing(http(url)) as model:
        replies = [model.ask([PROMPT])[0] for _ in range(3)]
    malformed = Unanswered("malformed reply", 1.0)
    assert replies == [malformed, Answer((0.5,), 1.0), malformed]


def test_an_audit_without_any_answer_ends_and_names_the_reason():
    why = r"most often: malformed reply, the first: the reply has nothing at 'p', which begins"
    with (
        serving(lambda *_: json_reply({"q": 0.5})) as url,
        closing(http(url, retries=Retries(times=0), limits=Limits(in_flight=4))) as model,
        Audit(space(40), model, budget=60, **PLAIN) as audit,
    ):
        with pytest.raises(ModelError, match=rf"(\d+) of \1 calls .*{why}.* none was answered"):
            audit.run()
        assert 10 <= len(audit.journal.calls()) < 10 + 8


def test_an_audit_that_had_answers_ends_when_resumed_at_a_server_that_gives_none():
    fields, journal = ["p"], MemoryJournal()
    options = {**PLAIN, "journal": journal}
    with serving(lambda *_: json_reply({fields[0]: 0.5})) as url:
        with closing(http(url)) as model, Audit(space(40), model, budget=5, **options) as audit:
            assert audit.run().calls == 5
        fields[0] = "q"
        broken = http(url, retries=Retries(times=0))
        again = Audit(space(40), broken, budget=40, **options)
        expected = r"(\d+) of \1 calls .* more than half"
        with closing(broken), again, pytest.raises(ModelError, match=expected):
            again.run()


@pytest.mark.parametrize(
    "body", [b"[1]", b'{"outputs": [{"name": "p", "shape": [1, 1], "data": [NaN]}]}', LESS_DEEP]
)
def test_tensors_that_are_none_are_malformed_replies(body):
    inputs = [{"name": "x", "datatype": "FP32", "shape": [-1, 3, -1, -1]}]
    about = {"name": "m", "inputs": inputs, "outputs": [{"name": "p"}]}
    with serving(lambda path, *_: json_reply(body if path.endswith("infer") else about)) as url:
        assert ask(tensors(url)).reason == "malformed reply"


def test_a_description_that_is_malformed_is_asked_for_again():
    with serving(lambda *_: json_reply(b"[" * 200_000)) as url:
        model = tensors(url, retries=Retries(times=1, first_wait=0.001, give_up_after=2))
        assert model.ask([PROMPT]) == [Unanswered("malformed reply", 0.0)]
        with pytest.raises(ModelError, match=r"2 calls in a row had no reply, the last: malformed"):
            ask(model)


@pytest.mark.parametrize(
    ("message", "read"),
    [({"content": "blue \ud800"}, ("blue ?",)), ({"refusal": "no \udfff"}, "refused: no ?")],
)
def test_halves_of_characters_are_journaled_as_what_files_can_hold(message, read):
    prompt = Prompt(None, ("a",), "s", "identity", 0, (Ask("Which?"),))
    with serving(lambda *_: json_reply(completion(message))) as url:
        answer = ask(chat(url, prices=Prices()), prompt)
        assert (answer.reason if isinstance(answer, Unanswered) else answer.values) == read


# -- bodies and connections -------------------------------------------------------------------


@pytest.mark.parametrize("how", ["packed", "endless"])
def test_eight_calls_in_flight_hold_a_few_times_what_a_reply_may_have(how):
    bomb = json_reply(gzip.compress(b" " * (64 * MB), 1), **{"content-encoding": "gzip"})
    with (
        serving(lambda *_: bomb if how == "packed" else "endless") as url,
        closing(chat(url, max_reply_bytes=MB, retries=Retries(times=0))) as model,
    ):
        tracemalloc.start()
        assert {answer.reason for answer in model.ask([PROMPT] * 8)} == {"reply too long"}
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 8 * 4 * MB


@pytest.mark.parametrize(
    ("length", "read"), [(None, Answer((0.5,), 1.0)), (12, Unanswered("truncated", 2.0))]
)
def test_packed_replies_are_unpacked_here(length, read):
    body, encodings = gzip.compress(b'{"p": 0.5}', mtime=0)[:length], set()

    def answer(path, headers, _):
        encodings.add(headers["accept-encoding"])
        return json_reply(body, **{"content-encoding": "gzip"})

    with serving(answer) as url:
        assert ask(http(url)) == read
    assert encodings == {"identity"}


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("truncate", "truncated"),
        ("drop", "connection lost"),
        ("hang", "timeout"),
        ((200, {}, b'{"choices": ['), "truncated"),
        ((503, {"retry-after": "0"}, b"busy"), "http 503"),
    ],
)
def test_attempts_that_fail_are_repeated_and_may_be_billed(reply, kind):
    steps = [reply]
    with serving(lambda *_: steps.pop() if steps else json_reply(GOOD)) as url:
        patience = Retries(timeout=0.5, first_wait=0.01)
        model = chat(url, retries=patience, prices=Prices(per_call=1.0))
        assert ask(model) == Answer((1.0,), 2.0)
        assert model.statistics()["failures"] == {kind: 1}


def test_no_image_follows_a_redirect():
    elsewhere: list[bytes] = []
    with (
        serving(lambda *sent: elsewhere.append(sent) or json_reply(GOOD)) as target,
        serving(lambda *_: json_reply(b"", 307, location=target)) as url,
        pytest.raises(ModelError, match=rf"http 307: redirects to '{target}', which is"),
    ):
        ask(tensors(url))
    assert elsewhere == []


def test_an_unreachable_host_is_named():
    with pytest.raises(ModelError, match=r"at 127\.0\.0\.1:9: unreachable: cannot be reached"):
        ask(chat("http://127.0.0.1:9/v1"))


# -- what audits do about it -----------------------------------------------------------------


def test_calls_drawn_ahead_are_not_sent_once_the_server_counts_more_than_was_declared():
    flight, given = 4, []
    together = threading.Barrier(flight)

    def answer(path, headers, body):
        given.append(body)
        if len(given) == 1:  # it is made alone
            return json_reply({"p": 0.5, "n": 100})
        if len(given) <= 1 + flight:
            together.wait(20)
        return json_reply({"p": 0.5, "n": 400})

    counts = {"input_tokens": "n", "most_input_tokens": 100, "limits": Limits(in_flight=flight)}
    prices = Prices(input=1.0, output=0.0, tokens=1)
    with (
        serving(answer) as url,
        closing(http(url, prices=prices, retries=Retries(times=0), **counts)) as model,
        Audit(space(), model, max_cost=800.0, **PLAIN) as audit,
    ):
        audit.run()
        assert (len(given), audit.cost) == (1 + flight, 100.0 + flight * 400.0)
        assert "$1,700.00 of $800.00 was spent" in str(audit.stopped)


@pytest.mark.parametrize("share", [0.0, 1.5, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(InputError, match="fail_on_error: expected a number above 0 and at most 1"):
        Audit(space(40), chat("http://127.0.0.1:9"), fail_on_error=share, **PLAIN)


# -- whatever comes --------------------------------------------------------------------------


def test_more_containers_than_memory_should_hold_are_not_parsed():
    with pytest.raises(Exception, match="malformed reply: expected at most 100,000 lists"):
        parsed(b"[" + b"{}," * 100_000 + b"1]")
    assert len(parsed(b"[" + b"0.5," * 500_000 + b"1]")) == 500_001


words = st.sampled_from(["Yes", "no", "\ud800", 10**400, -1, 1.5])
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | words
fixed = st.fixed_dictionaries


def nested(part):
    return st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=3), part, max_size=3)


anything = st.recursive(leaves, nested, max_leaves=6)
tokens = fixed(
    {"token": st.sampled_from(["Yes", "no"]) | anything, "logprob": anything},
    optional={"top_logprobs": anything},
)
logprobs = anything | fixed({"content": st.lists(tokens, max_size=2)})
choices = fixed(
    {"message": anything | fixed({"content": anything})},
    optional={"finish_reason": anything, "logprobs": logprobs},
)
bodies = anything | fixed(
    {"choices": anything | st.lists(choices, min_size=1, max_size=2)},
    optional={"usage": anything, "p": anything},
)


@MAKERS
def test_whatever_comes_is_an_answer_or_none(make):
    reply = [json_reply({"choices": [{"message": {"content": "Yes"}}], "p": 1.0})]
    options = {"yes_from": "logprobs"} if make is chat else {}
    patience = Retries(times=1, first_wait=1e-6, give_up_after=10**6)
    with serving(lambda *_: reply[0]) as url, closing(make(url, retries=patience, **options)) as m:
        m.ask([PROMPT])

        @settings(deadline=None, max_examples=25, derandomize=True)
        @given(body=bodies)
        def check(body):
            reply[0] = json_reply(json.dumps(body).encode())
            (answer,) = checked(m, [PROMPT])
            assert 0 <= answer.cost <= m.most_cost
            values = (answer,) if isinstance(answer, Unanswered) else answer.values
            for value in values:  # can be journaled
                assert to_json(value) is not None
                str(getattr(value, "reason", "")).encode()

        check()
