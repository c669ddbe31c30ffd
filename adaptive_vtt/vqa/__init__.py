"""Questions in words: reading replies, published figures, and making questions from masks."""
