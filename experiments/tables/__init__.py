"""The papers' tables, with your runs: ``python -m adaptive_vtt.experiments.tables``."""
