"""Our own measurements of the engine: calls, coverage, time and memory."""
