"""The command line, run in this process."""

import re
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from adaptive_vtt.cli import main
from adaptive_vtt.cli.init import write_start

PLAIN = "[certify]\nsurrogate = false\nself_taught = false"


def run(*arguments: str) -> int:
    """Return the exit code of ``avtt ARGUMENTS``."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    code = ended.value.code
    return code if isinstance(code, int) else 0


def plain_start(folder: Path, **limits: object) -> Path:
    """Write the files of ``avtt init``, and return the SPEC.toml.

    Audits make no predictions, which would take most of their time. ``limits`` are fields' values.
    """
    path = write_start(folder)
    text = path.read_text().replace("[certify]", PLAIN)
    for name, value in limits.items():
        text = re.sub(rf"^{name} = .*$", f"{name} = {value}", text, flags=re.M)
    path.write_text(text)
    return path


def shown(*arguments: str, code: int = 0) -> str:
    """Return the standard output of ``avtt ARGUMENTS``, which must end with this exit code."""
    with redirect_stdout(StringIO()) as printed:
        assert run(*arguments) == code
    return printed.getvalue()


def refused(*arguments: str, code: int = 2) -> str:
    """Return the message of ``avtt ARGUMENTS``, with notes before it, with single spaces."""
    with redirect_stderr(StringIO()) as printed:
        assert run(*arguments) == code
    _, *sentences = re.split(r"^avtt: ", printed.getvalue(), flags=re.M)
    assert 1 <= len(sentences) <= 3
    return " ".join(" ".join(sentences).split())
