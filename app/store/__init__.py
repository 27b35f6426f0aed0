"""The only SQL. One module per room of the schema; each function takes the open transaction `tx` first, or the `pool`.

`Store` opens transactions; a service wraps one step of the road in one transaction, and what must happen after it is a
row written in it (outbox, job), never a call made beside it. `StatementPool` runs what is one statement: taking updates
in, and asking who sends a request.
"""

from app.store.engine import Store, Tx
from app.store.pool import StatementPool

__all__ = ["StatementPool", "Store", "Tx"]
