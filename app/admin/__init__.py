"""The panel: auth, session, views, templates."""
