"""The loop's parts: belief to law to draw to call to outcome. No input or output happens here."""
