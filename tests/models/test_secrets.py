"""Keys come from the environment: none that a spec can hold reaches a file or the terminal."""

import json
import re
import tomllib
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.config import parse_spec
from adaptive_vtt.config.secrets import filled, refuse_secrets
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.models import AnthropicMessages, HttpJson, OpenAIBatch, OpenAIChat
from adaptive_vtt.models.network.keys import names_secret
from adaptive_vtt.types import Ask, Prompt
from tests.helpers.command_line import plain_start, run
from tests.helpers.loopback import serving
from tests.models.test_openai_chat import completion

KEYS = {
    "QUERY": "query&secret/0",
    "HEADER": "header-secret-1",
    "BODY": "body-secret-2",
    "BEARER": "bearer-secret-3",
    "OPTION": "option-secret-4",
}


def spec_with(folder, model):
    """The path of a runnable spec with this [model] section."""
    path = plain_start(folder)
    before, _, after = path.read_text().partition("[model]")
    path.write_text("\n".join([f"{before}[model]", model, after[after.index("\n[") :]]))
    return str(path)


HTTP = """
kind = "http"
url = "{url}/predict/v1?key=${{QUERY}}&alt=json"
response = "p"
request = {{ concepts = "{{concepts}}", auth = {{ token = "${{BODY}}" }} }}
[model.headers]
X-Api-Key = "${{HEADER}}"
Authorization = "Bearer $BEARER"
Accept = "application/json"
"""
CHAT = """
kind = "openai"
model = "m"
url = "{url}/v1"
key = "BEARER"
yes_from = "words"
[model.options]
extra_headers = {{ "X-Key" = "$HEADER" }}
extra_query = {{ sig = "${{QUERY}}" }}
extra_body = {{ secret = "${{BODY}}" }}
user = "${{OPTION}}"
"""


@pytest.mark.parametrize("model", [pytest.param(HTTP, marks=pytest.mark.slow), CHAT])
def test_keys_reach_the_server_and_nothing_else(model, tmp_path, monkeypatch, capfd):
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    seen, out = [], tmp_path / "out"

    def answer(path, headers, body):
        sent = json.loads(body)
        seen.append((path, headers, sent))
        reply = (
            completion("No") if "messages" in sent else {"p": dict.fromkeys(sent["concepts"], 0)}
        )
        return 200, {}, json.dumps(reply).encode()

    with serving(answer) as url:
        spec = spec_with(tmp_path / "start", model.format(url=url))
        assert run("audit", spec, "--dry-run", "--budget", "3") == 0
        assert run("audit", spec, "--budget", "3", "--out", str(out)) == 0
        assert run("resume", str(out)) == 0
        assert run("report", str(out)) == 0
        run("export", str(out), "--failures", str(out / "failures"))
        run("verify", str(out))
    path, headers, body = seen[0]
    query = parse_qs(urlsplit(path).query)
    assert headers["Authorization"] == f"Bearer {KEYS['BEARER']}"
    assert query.get("key", query.get("sig")) == [KEYS["QUERY"]]
    assert KEYS["HEADER"] in (headers["X-Api-Key"], headers["X-Key"])
    assert KEYS["BODY"] in (body.get("secret"), body.get("auth", {}).get("token"))
    printed, files = "".join(capfd.readouterr()), [p for p in out.rglob("*") if p.is_file()]
    assert out / "journal.db" in files
    for name, key in KEYS.items():
        assert key not in printed, name
        for file in files:
            assert key.encode() not in file.read_bytes(), (name, file)


SECRET = "8f3kQz71LmNw02RtYb55"
TABLE = Path(__file__).with_name("secrets.toml").read_text(encoding="utf-8")
SECTIONS = tomllib.loads(TABLE.replace("SECRET", SECRET))


@pytest.mark.parametrize("place", SECTIONS["refused"])
def test_a_key_written_out_is_refused_and_not_repeated(place):
    section = {"kind": "http", **SECTIONS["refused"][place]}
    with pytest.raises(InputError, match=r"SPEC\.toml: model\.") as raised:
        parse_spec({"dataset": {"kind": "fashion"}, "model": section}, "SPEC.toml")
    message = str(raised.value)
    assert SECRET not in message
    assert "hunter-two" not in message
    assert "environment" in message or "Authorization header can hold" in message


@pytest.mark.parametrize("field", ["url", "key", "headers", "options", "request"])
def test_a_field_of_the_wrong_type_is_not_repeated(field):
    kind = "openai" if field in ("key", "options") else "http"
    table = {"dataset": {"kind": "fashion"}, "model": {"kind": kind, field: [SECRET]}}
    with pytest.raises(InputError, match=rf"model\.{field}.*not repeated") as raised:
        parse_spec(table, "SPEC.toml")
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("section", SECTIONS["taken"].values(), ids=SECTIONS["taken"])
def test_what_is_no_key_is_taken(section):
    refuse_secrets(section, "SPEC.toml")


def test_what_python_writes_out_is_not_repeated():
    def echo(path, headers, body):
        received = " ".join([path, headers["x-own"], json.loads(body)["api_key"]])
        return 400, {}, json.dumps({"error": received}).encode()

    prompt = Prompt(None, ("a",), "s", "identity", 0, asks=(Ask("What?"),))
    sent, own = {"api_key": "body-key"}, {"x-own": "Bearer header-key"}
    with serving(echo) as url:
        options = {"extra_headers": own, "extra_query": {"own": "query-key"}, "extra_body": sent}
        for model in (
            HttpJson(f"{url}/p?own=query-key", request=sent, response="p", headers=own),
            OpenAIChat("m", base_url=f"{url}/v1", options=options),
        ):
            with model, pytest.raises(ModelError, match=r"\[key\]") as raised:
                model.ask([prompt])
            assert not re.search("body-key|header-key|query-key", str(raised.value))


@settings(max_examples=30)
@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=16, max_size=64), st.data())
def test_what_looks_drawn_at_random_is_refused_in_any_header(text, data):
    name = data.draw(st.sampled_from(["Accept", "User-Agent", "X-Title"]))
    model = {"headers": {name: text}}
    if any(c.isdigit() for c in text) and any(c.isalpha() for c in text):
        with pytest.raises(InputError, match="looks like a key"):
            refuse_secrets(model, "SPEC.toml")
    else:
        refuse_secrets(model, "SPEC.toml")


def test_names_of_secrets_are_recognised():
    secret = ("apiKey", "X-API-KEY", "client_secret", "sig", "authToken", "PWD")
    plain = ("max_tokens", "key_env", "monkey", "author", "design", "Accept", "")
    assert [name for name in (*secret, *plain) if names_secret(name)] == [*secret]


@pytest.mark.parametrize("kind", [AnthropicMessages, OpenAIBatch, OpenAIChat])
def test_a_providers_own_variable_is_named_where_it_is_not_set(kind, monkeypatch):
    variables = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
    for name in variables:
        monkeypatch.delenv(name, raising=False)
    own = variables[kind in (OpenAIBatch, OpenAIChat)]
    with pytest.raises(InputError, match=rf"model\.key: expected .* {own}, which is not set"):
        kind("m")


def test_a_variable_that_is_not_set_is_named_and_one_that_is_never_shown(monkeypatch):
    model, missing = (
        {"url": "http://h/?k=${PLANTED}"},
        r"model\.url: expected the key in .* PLANTED",
    )
    with pytest.raises(InputError, match=missing), filled(model):
        pass
    monkeypatch.setenv("PLANTED", "planted-key-0815")
    shown = pytest.raises(InputError, match=r"nobody knows http://h/\?k=\[key\]")
    with shown, filled({**model, "name": "m"}) as (values, _):
        raise InputError(f"model.url: nobody knows {values['url']}")
