"""Tools for every room: images as bytes and files, whole files, devices, random streams."""
