"""The WhatsApp channel: receive, parse, render, send."""
