"""Drawn images whose truth is known."""
