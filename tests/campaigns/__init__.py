"""Campaigns against what is promised: minutes to hours each, run by hand and by ``make bench``."""
