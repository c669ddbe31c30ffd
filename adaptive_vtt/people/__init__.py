"""People confirm what an audit of captions reports, judge changed pictures, or answer what the
model was asked: on cards, by one page or on one terminal, with a file of answers each."""
