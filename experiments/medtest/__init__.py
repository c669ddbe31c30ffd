"""MedTest: its relations, models and retraining, on the phantom."""
