"""Campaigns against our promises: minutes to hours each, run by hand and by ``make bench``."""
