"""One model held by many workers: processes on this machine, or actors of a Ray cluster."""
