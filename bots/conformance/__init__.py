"""The tests that every channel passes."""
