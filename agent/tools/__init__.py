"""Tools: what they promise, how they are run, and the journal bracket around what they change."""
