"""Everyday scenes' parts: which things there are, where they go, and how they are drawn."""
