"""Models behind plain HTTP and JSON, and keys that nobody sees."""

import base64
import io
import json
import logging
import ssl
import sys
import traceback
from contextlib import closing
from itertools import product
from urllib.parse import quote

import numpy as np
import pytest

from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.models import HttpJson, Limits, OpenAIChat, Prices, Retries
from adaptive_vtt.models.checking import checked
from adaptive_vtt.models.network.http import _certificates as certificates
from adaptive_vtt.models.network.keys import Key, scrubbed
from adaptive_vtt.types import Answer, Ask, Prompt, Unanswered
from tests.helpers.hostile import json_reply
from tests.helpers.loopback import serving
from tests.models.test_openai_chat import completion

PROMPT = Prompt(np.full((6, 4, 3), 7, np.uint8), ("drusen", "cyst"), "eye-7", "rotation", 3)


def ask(endpoint, prompt=PROMPT):
    return checked(endpoint, [prompt])[0]


REQUEST = {"image": "{image_base64}", "ask": {"labels": "{concepts}"}, "note": "for {concepts}!"}


def http(url, **options):
    return HttpJson(url, **{"request": REQUEST, "response": "outputs.0.scores", **options})


def asked(answer, prompt=PROMPT, **options):
    """The answer of a model whose service replies ``answer``, or by it."""
    server = answer if callable(answer) else lambda *_: json_reply(answer)
    with serving(server) as url, closing(http(f"{url}/predict", **options)) as endpoint:
        return ask(endpoint, prompt)


def test_a_request_is_filled_and_the_answer_read():
    seen = []

    def answer(path, headers, body):
        seen.append((path, json.loads(body), headers["content-type"]))
        return json_reply({"outputs": [{"scores": [0.25, 1]}], "n": {"in": 7, "out": 2}})

    paths = {"input_tokens": "n.in", "output_tokens": "n.out", "most_input_tokens": 10}
    got = asked(answer, **paths, prices=Prices(input=1.0, output=1.0, tokens=1))
    assert got == Answer((0.25, 1.0), 9.0)
    path, body, kind = seen[0]
    assert (path, kind) == ("/predict", "application/json")
    assert body["ask"] == {"labels": ["drusen", "cyst"]}
    assert body["note"] == "for drusen, cyst!"
    assert body["image"].startswith("iVBOR")  # a PNG


@pytest.mark.parametrize(
    ("response", "reply", "values"),
    [
        ("", [0.5, 0.25], (0.5, 0.25)),
        ("p", {"p": {"cyst": 0.25, "drusen": True}}, (1.0, 0.25)),
        ({"cyst": "b.0", "drusen": "a"}, {"a": 0.5, "b": [None]}, (0.5, Unanswered("no answer"))),
    ],
)
def test_answers_may_be_a_list_an_object_or_apart(response, reply, values):
    assert asked(reply, response=response) == Answer(values)


def test_a_question_in_words_is_answered_in_words():
    prompt = Prompt(None, ("count",), "a", "identity", 0, (Ask("How many?", ("1", "2")),))
    seen = []

    def answer(path, headers, body):
        seen.append(json.loads(body))
        return json_reply({"text": "B"})

    request = {"q": "{question}", "of": "{options}", "image": "{image_base64}"}
    assert asked(answer, prompt, request=request, response="text") == Answer(("B",))
    assert seen == [{"q": "How many?", "of": ["1", "2"], "image": None}]
    assert http("http://a", request=request).answers == "one"
    assert http("http://a").answers == "all"


@pytest.mark.parametrize(
    ("reply", "response", "message"),
    [
        ({"p": 1}, "outputs.0.scores", "nothing at 'outputs.0.scores', which begins {\"p\": 1}"),
        ([1, 0, 1], "", "for each of 2 concepts (3 values)"),
        ({"p": ["high", {}]}, "p", "expected P(yes) at 'p', got [\"high\", {}]"),
    ],
)
def test_an_answer_that_is_not_where_it_should_be_is_shown(reply, response, message):
    once_more = Retries(times=1, first_wait=0.001)
    with (
        serving(lambda *_: json_reply(reply)) as url,
        closing(http(url, retries=once_more, response=response)) as endpoint,
    ):
        assert ask(endpoint) == Unanswered("malformed reply")
        counts = endpoint.statistics()
    assert counts["failures"] == {"malformed reply": 2}
    assert message in counts["first_malformed"]


def test_of_several_values_those_that_are_none_stay_unanswered():
    answer = Answer((0.5, Unanswered("no answer")))
    assert asked({"p": [0.5, "high"]}, response="p") == answer


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"request": {"a": "{image}"}}, r"request: unknown placeholder 'image'.*image_base64"),
        ({"headers": {"X-Api-Key": "abc"}}, r"X-Api-Key: expected the key as '\$VARIABLE'"),
        ({"headers": {"Token": "$NOT_THERE"}}, r"variable NOT_THERE, which is not set"),
        ({"input_tokens": "n"}, r"token counts need their bounds"),
        ({"max_reply_bytes": 0}, "max_reply_bytes: expected at least 1, got 0"),
        ({"prices": Prices(input=1, output=1)}, r"its tokens have a price: expected the most"),
        ({"limits": Limits(tokens_per_minute=9)}, r"its tokens have a limit per minute: expected"),
    ],
)
def test_http_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        http("http://example.org", **options)


# -- keys ----------------------------------------------------------------------------------

KEY = "sk-planted-0123456789"


def key_quoting(path, headers, body):
    """Refuses the key, and quotes it, as some servers do."""
    assert KEY in headers["authorization"]
    return json_reply({"error": {"message": f"wrong key {KEY}", "code": "x"}}, 401)


def key_echoing(path, headers, body):
    """Repeats the key wherever a server can repeat anything."""
    key = headers["authorization"]
    refusal = {"refusal": f"Not with {key}"} if "refuse" in body.decode() else {}
    return json_reply(completion(f"No, {key}", message=refusal))


def with_key(kind, url):
    if kind == "openai":
        return OpenAIChat("m", base_url=url, key="PLANTED", yes_from="words")
    path = "choices.0.message.content"
    headers = {"Authorization": "Bearer $PLANTED"}
    return http(url, request={"q": "{question}"}, response=path, headers=headers)


@pytest.fixture
def log():
    """What any library logs, however unimportant."""
    handler = logging.StreamHandler(text := io.StringIO())
    logging.root.addHandler(handler)
    logging.root.setLevel(logging.DEBUG)
    yield text
    logging.root.setLevel(logging.WARNING)
    logging.root.removeHandler(handler)


@pytest.mark.parametrize("kind", ["openai", "http"])
@pytest.mark.parametrize(
    ("answer", "question"),
    [(key_quoting, "Cyst?"), (key_echoing, "Cyst?"), (key_echoing, "Will you refuse?")],
)
def test_a_key_appears_nowhere(kind, answer, question, monkeypatch, log):
    monkeypatch.setenv("PLANTED", KEY)
    prompt = Prompt(PROMPT.image, ("cyst",), "a", "identity", 0, (Ask(question),))
    shown = []
    with serving(answer) as url:
        endpoint = with_key(kind, url)
        try:
            shown.append(repr(ask(endpoint, prompt)))
        except ModelError as error:
            lines = traceback.TracebackException.from_exception(error, capture_locals=True)
            shown += [repr(error), *lines.format()]
            shown += [repr(vars(e)) for e in (error, error.__cause__, error.__context__) if e]
        shown += [repr(endpoint), repr(vars(endpoint)), json.dumps(endpoint.statistics())]
        endpoint.close()
    assert "[key]" in shown[0]
    assert KEY not in "\n".join(shown)
    assert log.getvalue()
    assert KEY not in log.getvalue()


ENCODINGS = [
    lambda text: base64.b64encode(text).decode(),
    lambda text: base64.urlsafe_b64encode(text).decode(),
    lambda text: quote(text, safe=""),
    lambda text: quote(text, safe="").lower(),
    lambda text: "".join(f"%{octet:02X}" for octet in text),
    lambda text: json.dumps(text.decode()).replace("/", "\\/"),
    lambda text: "".join(f"&#{ord(one)};" for one in text.decode()),
    lambda text: text.hex(),
]


def test_a_key_is_recognised_in_encodings():
    secret = "sk-é/+_planted?0123456789~"
    around = product(("", "B", "Be", "Bearer "), ("", "?"))
    for encode, (before, after) in product(ENCODINGS, around):
        left = scrubbed(f"It was {encode(f'{before}{secret}{after}'.encode())}.", [Key(secret)])
        assert "[key]" in left
        most = len("It was [key].") + len(encode(f"{before}{after}".encode())) + 4
        assert len(left) <= most


@pytest.mark.parametrize("status", [200, 401])
def test_an_encoded_key_is_neither_journaled_nor_printed(status, monkeypatch):
    monkeypatch.setenv("PLANTED", KEY)
    prompt = Prompt(PROMPT.image, ("cyst",), "a", "identity", 0, (Ask("Cyst?"),))
    for encode in ENCODINGS:
        encoded = encode(KEY.encode())
        # so far in that a quotation of 200 characters cuts through it
        message = {"content": f"No, {encoded}", "message": "x" * 150 + encoded}
        reply = {"choices": [{"message": message}], "message": message["message"]}
        with (
            serving(lambda *_, reply=reply: json_reply(reply, status)) as url,
            closing(with_key("http", url)) as endpoint,
        ):
            try:
                shown = repr(ask(endpoint, prompt))
            except ModelError as error:
                shown = repr(error)
        assert "[key]" in shown
        assert encoded[:6] not in shown


def test_without_certifi_the_systems_certificates_are_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "certifi", None)
    certificates.cache_clear()
    assert certificates(None, None).verify_mode == ssl.CERT_REQUIRED
    certificates.cache_clear()
