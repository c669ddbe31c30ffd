"""Bodies too long, redirects, attempts that fail, and servers that fail too often."""

import gzip
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import Audit
from adaptive_vtt.config import Spec
from adaptive_vtt.config.building import build_audit
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.models import Answer, Endpoint, Limits, Prices, Retries, Unanswered
from tests.helpers.hostile import (
    GOOD,
    PLAIN,
    ask,
    chat,
    completion,
    http,
    said,
    space,
    tensors,
)
from tests.helpers.loopback import Said, serving

# -- bodies ----------------------------------------------------------------------------------

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
        ("br", b"?", Unanswered("malformed reply", 2.0)),
        ("gzip", b"no gzip", Unanswered("malformed reply", 2.0)),
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


# -- redirects -------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [chat, http, tensors], ids=["openai", "http", "open-inference"])
def test_no_image_follows_a_redirect(make: Callable[..., Endpoint]) -> None:
    elsewhere: list[bytes] = []

    def other(path: str, headers: Mapping[str, str], body: bytes) -> Said:
        elsewhere.append(body)
        return said(GOOD)

    with (
        serving(other) as target,
        serving(lambda *_: said(b"", 307, location=target)) as url,
        pytest.raises(ModelError, match=rf"http 307: redirects to '{target}', which is"),
    ):
        ask(make(url))
    assert elsewhere == []


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


# -- fail_on_error ---------------------------------------------------------------------------


def failing(url: str, share: float | None, **options: Any) -> Audit:
    return Audit(space(40), chat(url), budget=60, fail_on_error=share, **PLAIN, **options)


@pytest.mark.slow
def test_too_many_unanswered_calls_end_the_audit_and_it_goes_on_when_mended() -> None:
    broken = True

    def answer(path: str, headers: Mapping[str, str], body: bytes) -> Said:
        return said(completion(None) if broken and b"berry" in body else GOOD)

    with serving(answer) as url:
        with failing(url, None) as audit:
            assert audit.run().calls == 60
        with failing(url, 0.9) as audit:
            assert audit.run().calls == 60
        with failing(url, 0.2) as audit:
            wrong = r"\d+ of \d+ calls stayed unanswered \(most often: malformed reply, .*, more"
            with pytest.raises(ModelError, match=wrong):
                audit.run()
            made = len(audit.journal.calls())
            assert 20 <= made < 60
            assert audit.journal.facts()["endpoint"]["failures"]["malformed reply"] > 0
            broken = False
            with failing(url, 0.2, journal=audit.journal) as again:
                assert again.run().calls == 60


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


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5, float("nan")])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="fail_on_error: expected a number above 0 and at most 1"):
        failing("http://127.0.0.1:9", share)


# -- attempts --------------------------------------------------------------------------------

BOTH = completion({"role": "assistant", "content": "Yes"}).replace(b"{", b'{"p": 1.0, ', 1)
"""What a chat model and a service of plain JSON take for a Yes."""


@pytest.mark.parametrize("make", [chat, http], ids=["openai", "http"])
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
def test_attempts_that_fail_are_repeated_and_may_be_billed(
    make: Callable[..., Endpoint], how: Said, kind: str
) -> None:
    steps = [how]
    with serving(lambda *_: steps.pop() if steps else said(BOTH)) as url:
        patience = Retries(timeout=1.0, first_wait=0.01)
        model = make(url, retries=patience, prices=Prices(per_call=1.0))
        assert ask(model) == Answer((1.0,), 2.0)
        assert model.statistics()["failures"] == {kind: 1}


@pytest.mark.parametrize("make", [chat, http], ids=["openai", "http"])
def test_an_unreachable_host_is_named(make: Callable[..., Endpoint]) -> None:
    with pytest.raises(ModelError, match=r"at 127\.0\.0\.1:9: unreachable: cannot be reached"):
        ask(make("http://127.0.0.1:9/v1"))
