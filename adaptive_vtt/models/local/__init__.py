"""Models in this process or on this machine: functions, files, programs, recordings."""
