"""The trace, told: records become words for people, and lines for machines."""
