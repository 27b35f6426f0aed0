"""Schema changes, in order: expand → backfill → contract, each with lock and statement time-outs."""
