"""Exports of an audit as files: failures, disagreements, questions, and all images of a space."""
