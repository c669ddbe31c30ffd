"""Models that come with the package, to try audits on."""
