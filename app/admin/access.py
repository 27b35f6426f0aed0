"""Who may do what: roles are sets of rights, and every route of the panel names the one right it needs."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Right(StrEnum):
    """A right that a route needs. `PUBLIC` needs nobody, `SIGNED_IN` anybody with a session."""

    PUBLIC = "public"
    SIGNED_IN = "signed_in"
    OVERVIEW = "overview"
    LINEAGE = "lineage"
    REVIEW = "review"
    RELEASE = "release"
    SWITCH = "switch"
    PEOPLE = "people"
    IDENTITY = "identity"
    AUDIT = "audit"


_SEE = frozenset({Right.SIGNED_IN, Right.OVERVIEW, Right.LINEAGE})

ROLES: Mapping[str, frozenset[Right]] = MappingProxyType(
    {
        "viewer": _SEE,
        "reviewer": _SEE | {Right.REVIEW},
        "trainer": _SEE | {Right.SWITCH},
        "releaser": _SEE | {Right.SWITCH, Right.RELEASE},
        "privacy": _SEE | {Right.PEOPLE, Right.AUDIT},
        "owner": frozenset(Right),
    }
)


def may(role: str, right: Right) -> bool:
    """Whether `role` has `right`; a role that we do not know has none."""
    return right is Right.PUBLIC or right in ROLES.get(role, frozenset())
