"""Outbound clients: the model server and the judge."""
