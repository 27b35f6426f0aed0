"""The channels through which people talk to Mentee; each platform has its own room."""
