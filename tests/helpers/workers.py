"""Copies of objects that a worker process receives."""

from multiprocessing import Pipe
from threading import Thread
from typing import TypeVar, cast

T = TypeVar("T")


def received(thing: T) -> T:
    """Return the copy of an object that was sent through ``multiprocessing``'s own pipe."""
    outlet, inlet = Pipe()
    with outlet, inlet:
        sender = Thread(target=inlet.send, args=(thing,))  # a pipe holds little: read meanwhile
        sender.start()
        copy = outlet.recv()
        sender.join()
    return cast(T, copy)
