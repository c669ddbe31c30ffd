"""``avtt resume``: going on with an interrupted audit."""

from .options import Json, Open, RunDir
from .signals import interruptible


def resume(directory: RunDir, open_it: Open = False, as_json: Json = False) -> None:
    """Go on with an audit that was interrupted; no answer that came back is paid for twice.

    A run folder is a program, as a Makefile is: the model its journal names is
    run, once space and settings were found to be those of the audit. report,
    verify, export and label run nothing of it.

    Example: avtt resume runs/first
    """
    with interruptible(directory):
        from .run_folder import go_on, run_and_report

        run_and_report(go_on(directory), directory, as_json, open_it=open_it)
