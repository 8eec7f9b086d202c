"""Graphs: the loop of phase nodes, the inner ReAct loop, and the export for `langgraph dev`."""
