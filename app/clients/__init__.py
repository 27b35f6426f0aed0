"""Outbound clients: the model server, the judge and the transcriber."""
