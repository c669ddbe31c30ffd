"""Concept-centric VTT: its figures."""
