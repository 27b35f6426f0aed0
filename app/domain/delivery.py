"""How far a sent message came, as a state that only ever leads on: taken by the platform → delivered → read.

That the platform took it is known by its receipt. `failed` is final and kept as the part's own state, not as one of these.
"""

ORDER = ("delivered", "read")


def tells(status: str) -> bool:
    """Whether a platform's status says more than its receipt did."""
    return status in ORDER


def earlier(delivery: str) -> tuple[str, ...]:
    """Return the states that `delivery` leads on from, beside none at all."""
    return ORDER[: ORDER.index(delivery)]
