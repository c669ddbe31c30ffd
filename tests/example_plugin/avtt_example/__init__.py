"""Parts of an audit, as somebody else would write them."""
