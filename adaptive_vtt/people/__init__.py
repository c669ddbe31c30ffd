"""People confirm what an audit of captions reports, judge changed pictures, answer what the model
was asked, or review questions: on one page, with a CSV file of answers per person."""
