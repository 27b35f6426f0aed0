"""Taking up rows that wait in lanes, held by a lease: of a lane what was held before, else the oldest that waits.

Both ends of the road rest on it, what comes in and what goes out, so it is written once. Rows get their numbers before
they are committed: a row may appear behind a later one that is held already. It waits for that one to end. What it waits for is asked in two
parts: as one condition with `or` it would be looked for in the whole lane, for each row of it.
"""


def claiming(table: str, lane: str, *, waiting: str, held: str, only: str = "true") -> str:
    """Return the start of an update that holds one open row of each lane in which nobody holds any.

    A row whose lease is over comes before those that wait; of these the oldest is first.

    What follows it begins with `from ready`, joined by `taken.id = ready.id`. Bind `owner`, `limit` (rows) and `lease`
    (seconds). States are written out and not bound: only so PostgreSQL sees that the partial indexes fit.

    Args:
        table: one of our tables with `state`, `owner`, `attempts`, `lease_until` and `due_at`.
        lane: the column that keeps rows in order.
        waiting: the state of a row that nobody holds.
        held: the state of a row that somebody holds; it is open again once its lease is over.
        only: a condition on the row `r`, or on anything else, without which it is left where it is.
    """
    # Only names out of this folder are put in.
    return f"""
    with ready as (
        select r.id from {table} r
        where r.state in ('{waiting}', '{held}')
          and (r.state = '{waiting}' or r.lease_until < now())
          and (r.due_at is null or r.due_at <= now())
          and {only}
          and not exists (
              select 1 from {table} e
              where e.{lane} = r.{lane} and e.state in ('{waiting}', '{held}') and e.state = r.state and e.id < r.id
          )
          and not exists (
              select 1 from {table} h
              where h.{lane} = r.{lane} and h.state = '{held}' and (r.state = '{waiting}' or h.lease_until >= now())
          )
        order by r.id
        limit :limit
        for update skip locked
    )
    update {table} taken
    set state = '{held}', owner = :owner, attempts = taken.attempts + 1,
        lease_until = now() + make_interval(secs => :lease)
    """  # noqa: S608
