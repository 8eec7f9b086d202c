"""A model on this machine: its weights, its server, and both together while a run lasts (extra `local`)."""
