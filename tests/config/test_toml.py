"""TOML, and numbers in it, that could not be used: one sentence, and exit code 2."""

from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt.config import read_spec
from adaptive_vtt.config.datasets import read_dataset
from adaptive_vtt.engine.options import Certify, Limits
from adaptive_vtt.errors import InputError
from adaptive_vtt.stopping import MaxCost, WallClock
from tests.helpers.command_line import refused

DEEP, LARGE = "tables or lists within each other, got more", "integers of 64 bits"


@pytest.mark.parametrize("read", [read_spec, read_dataset])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 100_000 + "]" * 100_000, DEEP),
        ("a" + ".a" * 2_000 + " = 1", DEEP),
        ("a = " + "[" * 60 + "]" * 60, DEEP),
        ("a = " + "9" * 5_000, LARGE),
        ("[audit]\nbudget = 0x" + "f" * 5_000, LARGE),
        ("[a]\nb = [1, -9223372036854775809]", LARGE),
    ],
    ids=["lists", "keys", "sixty lists", "digits", "hex", "nested"],
)
def test_what_is_too_deep_or_too_large_is_no_toml(
    tmp_path: Path, read: object, text: str, message: str
) -> None:
    path = tmp_path / "SPEC.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"SPEC\.toml: is no TOML: expected .*{message}"):
        read(path)  # type: ignore[operator]


def test_a_file_as_windows_writes_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "data.toml"
    path.write_bytes(b"\xef\xbb\xbf[dataset]\r\nkind = 'fashion'\r\n")
    assert len(read_dataset(path)) == 2000


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--max-cost", "inf"), "--max-cost: expected a finite number, got inf"),
        (("--set", "certify.confidence=0.9999999999999999"), "confidence: expected less than or"),
        (("--set", "certify.confidence=95"), "it is a share: write 0.95 for 95 %"),
        (("--set", "certify.discovr=3"), "unknown field 'discovr'; did you mean 'discover'"),
        (("--set", "discover=3"), "unknown field 'discover': expected one of"),
        (("--set", "certify.discover=some"), "discover: expected a valid integer, got 'some'"),
        (("--set", "certify.discover="), "expected SECTION.FIELD=VALUE, such as"),
        (("--set", "certify=3"), "certify: expected a table of fields"),
    ],
)
def test_numbers_that_say_nothing_are_refused(
    tmp_path: Path, given: tuple[str, str], message: str
) -> None:
    assert message in refused("audit", "--demo", "--out", str(tmp_path / "run"), *given)


def test_python_is_told_the_same() -> None:
    for made in (MaxCost, WallClock):
        with pytest.raises(InputError, match="above 0, got inf; leave the limit out"):
            made(float("inf"))
    with pytest.raises(InputError, match="above 0, got inf; leave the limit out"):
        Limits(max_cost=float("inf")).rules(None)
    Certify(confidence=1 - 1e-9).check(0.2)
    with pytest.raises(InputError, match=r"confidence: .* at most 0\.999999999, got 0\.99999"):
        Certify(confidence=1 - 1e-16).check(0.2)


@pytest.mark.parametrize(
    ("read", "what"), [(read_spec, "a SPEC.toml"), (read_dataset, "a TOML file")]
)
def test_a_folder_in_place_of_a_file_is_said(read: Any, what: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"expected {what}, got a folder"):
        read(tmp_path)
