"""The loop of an audit: belief, proposal, draw, call, outcome. No input or output happens here."""
