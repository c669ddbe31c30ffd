"""Servers that reply whatever harms: the audit goes on, pays at most the worst, stays small."""

import gzip
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt import Audit
from adaptive_vtt.config import Spec
from adaptive_vtt.config.building import build_audit
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.journal.answer_json import to_json
from adaptive_vtt.models import Answer, Endpoint, Limits, Prices, Prompt, Retries, Unanswered
from adaptive_vtt.models.checking import checked
from adaptive_vtt.models.network.http import parsed
from adaptive_vtt.types import Ask
from tests.campaigns import resilience_server
from tests.campaigns.resilience_server import ATTACKS, Hostile, origins
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
    said,
    space,
    tensors,
)
from tests.helpers.loopback import Said, serving

# -- every attack of the campaign ------------------------------------------------------------


@pytest.fixture
def attacker() -> Iterator[Hostile]:
    server, elsewhere = origins()
    for each in (server, elsewhere):
        threading.Thread(target=each.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    for each in (server, elsewhere):
        each.shutdown()
        each.server_close()


@pytest.mark.parametrize("make", [chat, http], ids=["openai", "http"])
def test_an_attack_costs_the_worst_at_most_and_ends_no_audit_that_has_answers(
    make: Callable[..., Endpoint], attacker: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resilience_server, "BOMB", 2**22)
    url = f"{attacker.url}/v1" if make is chat else f"{attacker.url}/predict"
    own: dict[str, Any] = {} if make is chat else {"response": "scores.0"}
    patience = Retries(times=1, timeout=0.3, first_wait=1e-3, give_up_after=10**6)
    model = make(url, max_reply_bytes=2**20, retries=patience, **own)
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
    (answer,) = checked(model, [honest])
    assert isinstance(answer, Answer)
    assert attacker.counts["followed"] == 0
    model.close()


# -- malformed replies -----------------------------------------------------------------------


def test_audits_go_on_past_malformed_replies_and_report_them() -> None:
    costs = {completion([None]): COUNTED, b"[1]": WORST, LESS_DEEP: WORST}
    given: list[bytes] = []

    def answer(path: str, headers: Mapping[str, str], body: bytes) -> Said:
        if b"apple" in body:
            return said(GOOD)
        given.append([*costs][len(given) % len(costs)])
        return said(given[-1])

    with serving(answer) as url:
        model = chat(url, limits=Limits(in_flight=3))
        with Audit(space(), model, **PLAIN, max_cost=1e6, fail_on_error=1) as audit:
            result = audit.run()
            failures = audit.journal.facts()["endpoint"]["failures"]
            reasons = Counter(call.answers[0].unanswered for call in audit.journal.calls())
            assert audit.interrupted == 0
        model.close()
    assert result.calls == 24
    assert reasons == {None: 12, "malformed reply": 12}
    assert failures == {"malformed reply": 24} == {"malformed reply": len(given)}
    assert result.cost == model.statistics()["cost"] == audit.cost
    assert result.cost == 12 * COUNTED + sum(map(costs.__getitem__, given))


def test_a_server_that_never_says_anything_sound_is_not_taken_for_one_that_is_down() -> None:
    with serving(lambda *_: said(completion(None))) as url:
        model = chat(url, retries=Retries(times=0, give_up_after=3))
        with Audit(space(), model, strategy="random", fail_on_error=1) as audit:
            assert audit.run().calls == 24
            assert audit.cost == 24 * COUNTED
        model.close()


def test_logits_are_malformed_replies_that_nobody_asks_for_again() -> None:
    steps = [{"p": 3.5}, {"p": 0.5}, {"p": 3.5}]
    with serving(lambda *_: said(steps.pop())) as url:
        model = http(url)
        replies = model.ask([PROMPT]), model.ask([PROMPT]), model.ask([PROMPT])
        assert replies[0] == replies[2] == [Unanswered("malformed reply", 1.0)]
        assert replies[1] == [Answer((0.5,), 1.0)]
        model.close()


def test_where_none_of_the_first_calls_is_answered_the_audit_ends_and_names_why() -> None:
    why = r"most often: malformed reply, the first: the reply has nothing at 'p', which begins"
    with (
        serving(lambda *_: said({"q": 0.5})) as url,
        closing(http(url, retries=Retries(times=0), limits=Limits(in_flight=4))) as model,
        Audit(space(40), model, budget=60, **PLAIN) as audit,
    ):
        with pytest.raises(ModelError, match=rf"(\d+) of \1 calls .*{why}.* none was answered"):
            audit.run()
        assert 10 <= len(audit.journal.calls()) < 10 + 8


def test_an_audit_that_had_answers_ends_when_resumed_at_a_server_that_gives_none() -> None:
    broken = False
    with serving(lambda *_: said({"q" if broken else "p": 0.5})) as url:
        journal = MemoryJournal()
        for budget in (5, 40):
            model = http(url, retries=Retries(times=0))
            with (
                closing(model),
                Audit(space(40), model, budget=budget, journal=journal, **PLAIN) as audit,
            ):
                if broken:
                    with pytest.raises(ModelError, match=r"(\d+) of \1 calls .* more than half"):
                        audit.run()
                else:
                    assert audit.run().calls == budget
            broken = True


def test_tensors_that_are_none_are_malformed_replies() -> None:
    about = {
        "name": "m",
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3, -1, -1]}],
        "outputs": [{"name": "p"}],
    }
    replies = [b"[1]", b'{"outputs": [{"name": "p", "shape": [1, 1], "data": [NaN]}]}', LESS_DEEP]
    for body in replies:
        with serving(
            lambda path, *_, body=body: said(body if path.endswith("infer") else about)
        ) as url:
            model = tensors(url)
            said_ = ask(model)
            assert isinstance(said_, Unanswered)
            assert said_.reason == "malformed reply"


def test_a_description_that_is_malformed_is_asked_for_again() -> None:
    with serving(lambda *_: said(b"[" * 200_000)) as url:
        model = tensors(url, retries=Retries(times=1, first_wait=0.001, give_up_after=2))
        assert model.ask([PROMPT]) == [Unanswered("malformed reply", 0.0)]
        with pytest.raises(ModelError, match=r"2 calls in a row had no reply, the last: malformed"):
            ask(model)


def test_halves_of_characters_are_journaled_as_what_files_can_hold() -> None:
    prompt = Prompt(None, ("a",), "s", "identity", 0, (Ask("Which?"),))
    replies: list[dict[str, Any]] = [{"content": "blue \ud800"}, {"refusal": "no \udfff"}]
    for message, found in zip(replies, (Answer(("blue ?",)), "refused: no ?"), strict=True):
        body = completion(message)
        with serving(lambda *_, body=body: said(body)) as url:
            answer = ask(chat(url, prices=Prices()), prompt)
            assert (answer.reason if isinstance(answer, Unanswered) else answer) == found


# -- bodies and connections -------------------------------------------------------------------

MB = 2**20


EIGHT = """
import re, sys
import numpy as np
from adaptive_vtt.models import OpenAIChat, Prompt, Retries
answers = []
for url in sys.argv[1:]:
    model = OpenAIChat("m", base_url=url, yes_from="words", retries=Retries(times=0))
    answers += model.ask([Prompt(np.zeros((8, 8, 3), np.uint8), ("a",), "s", "identity", 0)] * 8)
    model.close()
peak = re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())
print(len(answers), {a.reason for a in answers}, int(peak[1]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_eight_calls_in_flight_stay_under_400_megabytes() -> None:
    """Replies that unpack to 128 MB first, then replies without an end."""
    bomb = said(gzip.compress(b" " * (128 * MB), 1), **{"content-encoding": "gzip"})
    with serving(lambda *_: bomb) as packed, serving(lambda *_: "endless") as endless:
        command = [sys.executable, "-c", EIGHT, packed, endless]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    reasons, peak = done.stdout.rsplit(maxsplit=1)
    assert reasons == "16 {'reply too long'}"
    assert int(peak) < 400


@pytest.mark.parametrize(
    ("encoding", "body", "found"),
    [
        ("gzip", gzip.compress(b'{"p": 0.5}', mtime=0), Answer((0.5,), 1.0)),
        ("gzip", gzip.compress(b'{"p": 0.5}', mtime=0)[:12], Unanswered("truncated", 2.0)),
    ],
)
def test_packed_replies_are_unpacked_here(
    encoding: str, body: bytes, found: Answer | Unanswered
) -> None:
    asked: list[str] = []

    def answer(path: str, headers: Mapping[str, str], _: bytes) -> Said:
        asked.append(headers["accept-encoding"])
        return said(body, **{"content-encoding": encoding})

    with serving(answer) as url:
        assert ask(http(url)) == found
    assert set(asked) == {"identity"}


def test_a_bound_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="max_reply_bytes: expected at least 1, got 0"):
        http("http://127.0.0.1", max_reply_bytes=0)


def test_no_image_follows_a_redirect() -> None:
    elsewhere: list[bytes] = []

    def other(path: str, headers: Mapping[str, str], body: bytes) -> Said:
        elsewhere.append(body)
        return said(GOOD)

    with (
        serving(other) as target,
        serving(lambda *_: said(b"", 307, location=target)) as url,
        pytest.raises(ModelError, match=rf"http 307: redirects to '{target}', which is"),
    ):
        ask(tensors(url))
    assert elsewhere == []


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("truncate", "truncated"),
        ("drop", "connection lost"),
        ("hang", "timeout"),
        ((200, {}, b'{"choices": ['), "truncated"),
        ((503, {"retry-after": "0"}, b"busy"), "http 503"),
    ],
)
def test_attempts_that_fail_are_repeated_and_may_be_billed(how: Said, kind: str) -> None:
    steps = [how]
    with serving(lambda *_: steps.pop() if steps else said(GOOD)) as url:
        patience = Retries(timeout=0.5, first_wait=0.01)
        model = chat(url, retries=patience, prices=Prices(per_call=1.0))
        assert ask(model) == Answer((1.0,), 2.0)
        assert model.statistics()["failures"] == {kind: 1}


def test_an_unreachable_host_is_named() -> None:
    with pytest.raises(ModelError, match=r"at 127\.0\.0\.1:9: unreachable: cannot be reached"):
        ask(chat("http://127.0.0.1:9/v1"))


# -- what audits do about it -----------------------------------------------------------------


def test_calls_drawn_ahead_are_not_sent_once_the_server_counts_more_than_was_declared() -> None:
    flight, given = 4, []
    together = threading.Barrier(flight)

    def answer(path: str, headers: Mapping[str, str], body: bytes) -> Said:
        given.append(body)
        if len(given) <= flight:
            together.wait(20)
        return said({"p": 0.5, "n": 400})

    with serving(answer) as url:
        model = http(
            url,
            prices=Prices(input=1.0, output=0.0, tokens=1),
            input_tokens="n",
            most_input_tokens=100,
            retries=Retries(times=0),
            limits=Limits(in_flight=flight),
        )
        with Audit(space(), model, max_cost=800.0, **PLAIN) as audit:
            audit.run()
            assert (len(given), audit.cost) == (flight, flight * 400.0)
            assert "$1,600.00 of $800.00 was spent" in str(audit.stopped)
        model.close()


def test_a_spec_sets_the_bound_of_replies_and_the_share_of_failures(tmp_path: Path) -> None:
    with serving(lambda *_: said(b'{"p": ' + b" " * 5000 + b"0.5}")) as url:
        chosen = {
            "dataset": {
                "kind": "adaptive_vtt.experiments.medtest.phantoms:frames",
                "options": {"count": 30, "size": 64},
            },
            "model": {
                "kind": "http",
                "url": url,
                "request": {"q": "{concept}"},
                "response": "p",
                "retries": 0,
                "max_reply_bytes": 1000,
            },
            "audit": {"strategy": "random", "budget": 60, "fail_on_error": 0.5},
        }
        audit = build_audit(Spec.model_validate(chosen), tmp_path)
        with audit, pytest.raises(ModelError, match=r"(\d+) of \1 .*most often: reply too long"):
            audit.run()
        audit.model.close()


@pytest.mark.parametrize("share", [0.0, 1.5, float("nan")])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="fail_on_error: expected a number above 0 and at most 1"):
        Audit(space(40), chat("http://127.0.0.1:9"), fail_on_error=share, **PLAIN)


# -- whatever comes --------------------------------------------------------------------------


def test_more_containers_than_memory_should_hold_are_not_parsed() -> None:
    with pytest.raises(Exception, match="malformed reply: expected no more than 100,000 lists"):
        parsed(b"[" + b"{}," * 100_000 + b"1]")
    assert len(parsed(b"[" + b"0.5," * 500_000 + b"1]")) == 500_001


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["Yes", "no", "\ud800", 10**400, -1, 1.5]),
)
anything = st.recursive(
    leaves,
    lambda part: (
        st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=3), part, max_size=3)
    ),
    max_leaves=6,
)
tokens = st.fixed_dictionaries(
    {"token": st.sampled_from(["Yes", "no"]) | anything, "logprob": anything},
    optional={"top_logprobs": anything},
)
choices = st.fixed_dictionaries(
    {"message": anything | st.fixed_dictionaries({"content": anything})},
    optional={
        "finish_reason": anything,
        "logprobs": anything | st.fixed_dictionaries({"content": st.lists(tokens, max_size=2)}),
    },
)
bodies = anything | st.fixed_dictionaries(
    {"choices": anything | st.lists(choices, min_size=1, max_size=2)},
    optional={"usage": anything, "p": anything},
)


@pytest.mark.parametrize("make", [chat, http], ids=["openai", "http"])
def test_whatever_comes_is_an_answer_or_none(make: Callable[..., Endpoint]) -> None:
    reply = [said({"choices": [{"message": {"content": "Yes"}}], "p": 1.0})]
    with serving(lambda *_: reply[0]) as url:
        options = {"yes_from": "logprobs"} if make is chat else {}
        patience = Retries(times=1, first_wait=1e-6, give_up_after=10**6)
        model = make(url, retries=patience, **options)
        model.ask([PROMPT])

        @settings(deadline=None, max_examples=60, derandomize=True)
        @given(body=bodies)
        def check(body: Any) -> None:
            reply[0] = said(json.dumps(body).encode())
            (answer,) = checked(model, [PROMPT])
            assert 0 <= answer.cost <= model.most_cost
            values = (answer,) if isinstance(answer, Unanswered) else answer.values
            for value in values:  # can be journaled
                assert to_json(value) is not None
                str(getattr(value, "reason", "")).encode()

        check()
        model.close()
