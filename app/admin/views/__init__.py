"""The pages: each view reads through the store, decides nothing itself, and answers with a template or a redirect."""
