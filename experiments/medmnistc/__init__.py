"""MedMNIST-C: its tables and its speed, and photographs of blood."""
