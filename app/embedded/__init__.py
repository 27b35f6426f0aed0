"""The embedded form: every part from a wheel, started, watched and stopped in order."""
