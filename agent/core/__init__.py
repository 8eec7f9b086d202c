"""The pure core: values and decisions. No framework, clock, randomness or IO is imported here."""
