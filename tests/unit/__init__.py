"""Rules alone: no database, no network."""
