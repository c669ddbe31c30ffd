"""``python -m adaptive_vtt`` is ``avtt``."""

from .cli import main

main()
