"""The trace as one page: records and state become a small report, and that becomes HTML."""
