"""Verdicts on replies: prompt, judge, vote, hint."""
