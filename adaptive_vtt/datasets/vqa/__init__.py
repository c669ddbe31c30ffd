"""Questions in words: EndoBench's and MEDVQA-GI's, and making them from masks and labels."""
