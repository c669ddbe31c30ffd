"""The command line. Importing it loads typer, and nothing of the engine."""

from .main import main

__all__ = ["main"]
