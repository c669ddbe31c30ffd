"""Experiments: the papers' figures and tables, and benchmarks.

Run one with ``python -m adaptive_vtt.experiments.FOLDER.NAME``; ``--help`` lists its options. Those
of ``make bench`` have a short run, ``--quick``, which takes a minute of one core and shows that
they work. Its output, also in ``bench/quick``, is no measurement.
"""

if __name__ != "adaptive_vtt.experiments":
    raise ImportError("this folder is imported as adaptive_vtt.experiments, not as experiments")
