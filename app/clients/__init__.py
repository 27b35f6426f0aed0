"""Outbound calls: HTTP, vLLM, judge."""
