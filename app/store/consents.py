"""What a person allows at this moment, asked of the consent log itself and never of a cached flag.

One rule for every query: the latest answer to a purpose counts, and of two at the same instant the one that grants nothing.
"""

from typing import Any

from sqlalchemy import ColumnElement, func, select

from app.domain.consent import GRANTING, Purpose
from app.store.tables.people import consent_events

_GRANTING = "event in ({})".format(", ".join(f"'{event}'" for event in sorted(GRANTING)))


def latest_first() -> tuple[ColumnElement[Any], ...]:
    """Return the order in which the first answer to a purpose is the one that counts."""
    return consent_events.c.at.desc(), consent_events.c.event.in_(sorted(GRANTING)).asc()


def allows_now(person_id: ColumnElement[Any], purpose: Purpose) -> ColumnElement[bool]:
    """Whether a person allows `purpose`."""
    latest = (
        select(consent_events.c.event.in_(sorted(GRANTING)))
        .where(consent_events.c.person_id == person_id, consent_events.c.purpose == purpose.value)
        .order_by(*latest_first())
        .limit(1)
    )
    return func.coalesce(latest.scalar_subquery(), False)


def allows_in_sql(person: str, purpose: Purpose, at: str = "now()") -> str:
    """Return the condition that `person` allows `purpose`, or did `at` a moment; both are expressions of a query as text."""
    return f"""coalesce((
        select e.{_GRANTING} from consent_events e
        where e.person_id = {person} and e.purpose = '{purpose.value}' and e.at <= {at}
        order by e.at desc, e.{_GRANTING} limit 1
    ), false)"""  # noqa: S608 - expressions of our own queries


def allowed_in_sql(person: str) -> str:
    """Return the purposes that `person`, an expression of a query as text, allows: an array, in alphabetical order."""
    return f"""array(
        select latest.purpose from (
            select distinct on (e.purpose) e.purpose, e.event from consent_events e where e.person_id = {person}
            order by e.purpose, e.at desc, e.{_GRANTING}
        ) latest
        where latest.{_GRANTING} order by latest.purpose
    )"""  # noqa: S608 - the same
