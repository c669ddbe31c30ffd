"""Models behind a network: calls in flight, limits, retries, prices."""
