"""Tables for papers."""

import pandas as pd

from adaptive_vtt.utils.tables import latex


def test_a_row_that_begins_with_a_bracket_is_no_option_of_the_line_break_before() -> None:
    """LaTeX takes ``[b]`` or ``*`` behind ``\\\\`` or a rule for a length, and fails."""
    table = pd.DataFrame({"[name]": ["[b] & 50 %_#", "*", "plain"], "n": [1, 2, 3]})
    rows = latex(table, "odd").splitlines()
    assert rows[6:12] == [
        r"{}[name] & n \\",
        r"\midrule",
        r"{}[b] \& 50 \%\_\# & 1 \\",
        r"{}* & 2 \\",
        r"plain & 3 \\",
        r"\bottomrule",
    ]
