"""The only SQL. One module per room of the schema; each function takes the open transaction `tx` first (or the `door`).

`Store` opens transactions; a service wraps one step of the road in one transaction, and what must happen after it is a
row written in it (outbox, job), never a call made beside it.
"""

from app.store.door import Door
from app.store.engine import Store, Tx

__all__ = ["Door", "Store", "Tx"]
