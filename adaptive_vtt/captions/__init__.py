"""Captions: the objects they name, where those are, and what may be expected of a follow-up."""
