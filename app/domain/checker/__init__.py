"""Properties of a reply that a machine can decide: what they are, whether a reply has them, how words ask for them."""

from app.domain.checker.derive import derive
from app.domain.checker.properties import check, failures
from app.domain.checker.spec import CheckerSpec, Rule

__all__ = ["CheckerSpec", "Rule", "check", "derive", "failures"]
