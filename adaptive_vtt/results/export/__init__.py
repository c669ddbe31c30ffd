"""What leaves an audit as files: failing follow-ups, and all pictures of a space."""
