"""The papers' figures and tables and the benchmarks.

Each has a short run: ``--quick``, or few ``--seeds``, images (``--images``, ``--count``) or calls.
"""

if __name__ != "adaptive_vtt.experiments":
    raise ImportError("this folder is imported as adaptive_vtt.experiments, not as experiments")
