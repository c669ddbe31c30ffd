"""What chat models in batches share, whoever their provider is."""

from collections.abc import Awaitable, Mapping
from typing import Any

from ...errors import InputError
from ...types import Prompt
from .attempts import Trouble
from .batches import BatchEndpoint
from .chat import WORDS, Chat
from .chat_replies import in_words
from .wire import parsed

NO_LIST = ("http 404", "http 405", "http 501")
"""Kinds of trouble with a server that lists no batches."""


class ChatBatch(Chat, BatchEndpoint):
    """A chat model in batches, each worded in one way to P(yes)."""

    def worded(self, way: str, prompt: Prompt) -> dict[str, Any]:
        """The request of a prompt, asking for P(yes) in a certain way."""
        raise TypeError(f"{type(self).__name__} defines no worded")

    @property
    def form(self) -> str:
        return self._ways.now

    def request(self, prompt: Prompt, form: str) -> dict[str, Any]:
        return self.worded(WORDS if in_words(prompt) else form, prompt)

    def falls_back(self, form: str, trouble: Trouble, prompt: Prompt) -> bool:
        return self._refuses(WORDS if in_words(prompt) else form, trouble)

    def _check_size(self, size: int, most: int, requests: Mapping[str, Any]) -> None:
        """Raises InputError where requests are longer than the provider takes."""
        if size > most:
            raise InputError(
                f"model {self.name!r}: expected batches of at most {most:,} bytes, got "
                f"{size:,} for {len(requests)} calls; lower batch_size, or send "
                "image_format = 'jpeg'"
            )

    async def _said(self, exchange: Awaitable[Any]) -> dict[str, Any]:
        said = parsed(await self._body(exchange))
        if not isinstance(said, dict):
            raise TypeError(f"expected a JSON object, got {type(said).__name__}")
        return said

    async def _body(self, exchange: Awaitable[Any]) -> bytes:
        """What an exchange brings, as it came."""
        raise TypeError(f"{type(self).__name__} defines no _body")


def known(form: str, ways: tuple[str, ...]) -> str:
    """The form, of a result that is read; raises ValueError where it is no way to P(yes)."""
    if form not in ways:
        raise ValueError(f"expected a way to P(yes), got {form[:40]!r}")
    return form
