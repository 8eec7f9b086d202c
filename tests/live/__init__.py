"""Twenty small tasks over real files and a real database, half of them in a world that fails, for a live model."""
