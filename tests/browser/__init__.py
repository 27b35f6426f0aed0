"""Tests that drive a headless Chromium over the pages."""
