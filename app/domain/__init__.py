"""Pure rules; no I/O and no framework."""
