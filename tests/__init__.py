"""Tests of Mentee."""
