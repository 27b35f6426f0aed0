"""How the gateway is put together, one file per part that needs more than a line in `app.main`."""
