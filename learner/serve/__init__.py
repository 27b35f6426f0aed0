"""Which adapters a model server should have loaded, and whether it keeps them apart."""
