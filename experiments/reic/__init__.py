"""REIC: its tables, on drawn scenes and on photographs."""
