"""Real parts for the tests: servers that a run starts and ends itself."""
