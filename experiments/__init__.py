"""The papers' figures and tables and the benchmarks.

One is run as ``python -m adaptive_vtt.experiments.FOLDER.NAME``; ``--help`` says what it takes.
Each of ``make bench`` has a short run, ``--quick``: a minute or less of one core, to see it work.
What that prints, and writes into ``bench/quick``, measures nothing.
"""

if __name__ != "adaptive_vtt.experiments":
    raise ImportError("this folder is imported as adaptive_vtt.experiments, not as experiments")
