"""EndoBench: calls that certify its tasks."""
