"""Servers of this package listen on this machine alone, and answer to its own names alone."""

import re

ADDRESS = "127.0.0.1"
"""Where they listen."""
_NAMES = re.compile(r"(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(:\d{1,5})?")


def is_loopback(host: str) -> bool:
    """Whether a request's Host is a name of this machine.

    A page on the web could reach a local server under a name of its own that leads here (DNS
    rebinding), and read the answers: its Host gives it away.
    """
    return _NAMES.fullmatch(host.lower()) is not None
