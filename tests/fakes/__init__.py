"""Servers that speak the outside world's protocols on loopback, so that the product runs against them unmodified.

Each fake is strict where the real one is strict; it knows nothing of Mentee. `tests.fakes.fixtures` has the fixtures.
"""
