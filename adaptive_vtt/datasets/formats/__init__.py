"""One file per format of data sets on disk."""
