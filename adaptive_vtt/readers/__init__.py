"""People as readers: they judge changed pictures, or answer what the model was asked."""
