"""One file per step of the road of a message. Services own transactions; they know no platform and no SQL."""
