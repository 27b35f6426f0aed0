"""Rooms together: real PostgreSQL, real processes, servers that speak the real protocols."""
