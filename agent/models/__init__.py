"""Planners and chat models behind the ports. The only place that names a provider."""
