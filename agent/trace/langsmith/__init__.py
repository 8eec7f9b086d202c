"""Runs as LangSmith shows them: readable names, right parents, handles in place of bodies, scores for each run."""
