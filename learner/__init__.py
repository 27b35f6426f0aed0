"""What turns consented feedback into adapters: scoring, data sets, training, gates, serving."""
