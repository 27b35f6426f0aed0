"""The gates an adapter passes before anyone is served by it."""
