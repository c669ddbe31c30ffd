"""Comparing strategies and estimators on one space: runs, truth, summary, figure."""
