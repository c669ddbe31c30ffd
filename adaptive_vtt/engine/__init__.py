"""The loop's parts: belief to proposal to draw to call to outcome. No input or output happens
here."""
