"""The built-in web chat: receive, parse, render, send."""
