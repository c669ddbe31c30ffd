"""One suite per protocol, run over everything that implements it; see tests/README.md."""
