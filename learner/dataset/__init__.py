"""From consented feedback to an immutable snapshot: admit, scrub, freeze."""
