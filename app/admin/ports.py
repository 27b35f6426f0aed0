"""What the panel asks of the services: acts whose consequences reach beyond a row. Knows no implementation."""

from typing import Protocol
from uuid import UUID

from app.store import Tx


class PanelActions(Protocol):
    """Acts behind the panel's buttons.

    Each writes its own entry to the audit log (`app.store.audit.record`) in the transaction that does the act, with
    `actor` (the admin's login) and `reason`, except where the transaction `tx` is handed in: then the panel writes it.
    """

    async def roll_back(self, release_id: UUID, *, reason: str, actor: str) -> None:
        """Take a live release out of routing at once; the person returns to what they had before.

        Raises:
            NotFoundError: there is no such release.
            ConflictError: it is not live any more.
        """
        ...

    async def forget_person(self, person_id: UUID, *, actor: str, reason: str) -> str:
        """Forget a person and return the receipt code.

        Raises:
            NotFoundError: there is no such person.
        """
        ...

    async def feedback_reviewed(self, tx: Tx, feedback_id: UUID, state: str) -> None:
        """Do what follows from a review, in its transaction: admit or withdraw the item, queue what is due.

        Args:
            tx: the open transaction in which the decision was stored.
            feedback_id: what was reviewed.
            state: `approved`, `rejected`, `relabelled`, `quarantined`, or `new` when a decision was taken back.
        """
        ...
