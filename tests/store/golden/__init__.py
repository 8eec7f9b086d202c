"""Databases as earlier releases left them. See `make.py` for what is in one."""
