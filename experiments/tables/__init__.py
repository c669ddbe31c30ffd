"""The papers' tables, of runs of one's own: ``python -m adaptive_vtt.experiments.tables``."""
