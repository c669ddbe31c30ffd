"""What every room may use: images as bytes and files, whole files, devices, random streams."""
