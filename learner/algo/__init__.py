"""Learning algorithms, one file each: tensors in, tensors out. The registry lists what a run may ask for."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, get_args, get_type_hints

from torch import Tensor

from app.errors import InvalidInputError
from learner.algo.anchor import anchor_nll
from learner.algo.opd import kl_full, kl_top_k, sampled_advantage
from learner.types import TrainSettings


class Algorithm(NamedTuple):
    """The losses one algorithm is made of: by support for the policy, and the anchor beside it."""

    name: str
    supports: Mapping[str, Callable[..., Tensor]]
    anchor: Callable[..., Tensor]


def _register(*algorithms: Algorithm) -> Mapping[str, Algorithm]:
    """Build the registry and hold it against what settings may name, so that neither promises what is not there.

    Raises:
        InvalidInputError: a name twice, a setting without an algorithm, or a support without a function.
    """
    registry = {algorithm.name: algorithm for algorithm in algorithms}
    hints = get_type_hints(TrainSettings)
    if len(registry) != len(algorithms) or set(registry) != set(get_args(hints["algorithm"])):
        raise InvalidInputError("algorithms and the settings that name them disagree")
    if any(set(a.supports) != set(get_args(hints["support"])) for a in algorithms):
        raise InvalidInputError("supports and the settings that name them disagree")
    return MappingProxyType(registry)


ALGORITHMS = _register(
    Algorithm(
        name="opd",
        supports=MappingProxyType({"full": kl_full, "top_k": kl_top_k, "sampled": sampled_advantage}),
        anchor=anchor_nll,
    ),
)


def algorithm(name: str) -> Algorithm:
    """Return an algorithm by name.

    Raises:
        InvalidInputError: there is none of that name.
    """
    try:
        return ALGORITHMS[name]
    except KeyError as error:
        raise InvalidInputError(f"no algorithm {name!r}; there is {', '.join(sorted(ALGORITHMS))}") from error
