"""The papers' figures and tables and the benchmarks, each with ``--quick``."""

if __name__ != "adaptive_vtt.experiments":
    raise ImportError("this folder is imported as adaptive_vtt.experiments, not as experiments")
