"""Scripted trouble: refusals, delays, answers that get lost, answers that are no JSON.

Owns which call is hit. A method of "*" means every method.
"""

from dataclasses import dataclass, field

from tests.fakes.telegram.errors import ApiError


@dataclass(slots=True)
class Fault:
    """What happens to the next `times` calls of `method`."""

    method: str
    times: int
    refusal: ApiError | None = None
    delay_s: float = 0.0
    lose: bool = False
    garbage: str | None = None


@dataclass(slots=True)
class Faults:
    """Faults in the order in which they were asked for."""

    waiting: list[Fault] = field(default_factory=list)

    def take(self, method: str) -> Fault | None:
        """The fault that hits this call, used up by one."""
        for fault in self.waiting:
            if fault.method.lower() in ("*", method):
                fault.times -= 1
                if fault.times <= 0:
                    self.waiting.remove(fault)
                return fault
        return None
