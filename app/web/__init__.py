"""HTTP in: middleware, webhooks, health, the OpenAI-compatible API."""
