"""The command line, run in this process."""

import pytest

from adaptive_vtt.cli import main


def run(*arguments: str) -> int:
    """The exit code of ``avtt arguments``."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    code = ended.value.code
    return code if isinstance(code, int) else 0
