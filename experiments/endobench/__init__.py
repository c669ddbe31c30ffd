"""EndoBench: what its tasks take to certify."""
