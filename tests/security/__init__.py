"""Prompt injection: what a model that obeys every injected instruction can do to the world."""
