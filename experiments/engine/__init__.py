"""What the engine does and takes: our own measurements."""
