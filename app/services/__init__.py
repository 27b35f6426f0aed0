"""One file is one step of the road from update to release."""
