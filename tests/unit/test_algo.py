"""Losses against hand-computed values, finite differences and empty masks."""

import math

import pytest

from app.errors import InvalidInputError

torch = pytest.importorskip("torch")

from learner.algo import ALGORITHMS, algorithm  # noqa: E402
from learner.algo.anchor import anchor_nll  # noqa: E402
from learner.algo.clip import ClipBounds, clipped_policy_loss, importance_weights  # noqa: E402
from learner.algo.kl import k3, kl_to_reference  # noqa: E402
from learner.algo.opd import kl_full, kl_top_k, sampled_advantage  # noqa: E402

pytestmark = pytest.mark.slow


def logits(*rows: list[float]) -> "torch.Tensor":
    """One sequence whose positions have these probabilities."""
    return torch.tensor([rows], dtype=torch.float64).log()


def ones(*shape: int) -> "torch.Tensor":
    return torch.ones(shape, dtype=torch.long)


def random(*shape: int, seed: int = 0) -> "torch.Tensor":
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def test_full_reverse_kl_by_hand() -> None:
    student, teacher = logits([0.5, 0.5], [0.9, 0.1]), logits([0.25, 0.75], [0.9, 0.1])
    expected = 0.5 * math.log(2) + 0.5 * math.log(2 / 3)
    assert float(kl_full(student, teacher, ones(1, 2))) == pytest.approx(expected / 2)
    masked = torch.tensor([[1, 0]])
    assert float(kl_full(student, teacher, masked)) == pytest.approx(expected)
    assert float(kl_full(student, teacher, masked, count=torch.tensor(4.0))) == pytest.approx(expected / 4)


def test_forward_and_mixed_kl_by_hand() -> None:
    student, teacher = logits([0.5, 0.5]), logits([0.25, 0.75])
    reverse = 0.5 * math.log(2) + 0.5 * math.log(2 / 3)
    forward = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    assert float(kl_full(student, teacher, ones(1, 1), 1.0)) == pytest.approx(forward)
    assert float(kl_full(student, teacher, ones(1, 1), 0.25)) == pytest.approx(0.75 * reverse + 0.25 * forward)


def test_only_a_forward_share_finds_a_word_that_the_student_never_says() -> None:
    """The gradient at the wanted token: nothing by reverse KL, the whole missing mass by forward KL."""
    teacher = logits([0.01, 0.99])
    pulls = []
    for forward in (0.0, 0.5, 1.0):
        student = torch.tensor([[[20.0, -20.0]]], dtype=torch.float64).requires_grad_()
        kl_full(student, teacher, ones(1, 1), forward).backward()
        pulls.append(-float(student.grad[0, 0, 1]))
    assert pulls == pytest.approx([0.0, 0.99 / 2, 0.99], abs=1e-6)


def test_the_mixed_support_holds_what_the_teacher_wants() -> None:
    student, teacher = logits([0.6, 0.399, 0.001]), logits([0.009, 0.001, 0.99])
    mine = kl_top_k(student, teacher, ones(1, 1), k=1)
    assert float(mine) == pytest.approx(0.6 * math.log(0.6 / 0.009) + 0.4 * math.log(0.4 / 0.991))
    wanted = kl_top_k(student, teacher, ones(1, 1), k=1, forward=1.0)
    assert float(wanted) == pytest.approx(0.99 * math.log(0.99 / 0.001) + 0.01 * math.log(0.01 / 0.999))


def test_top_k_reverse_kl_by_hand() -> None:
    student, teacher = logits([0.6, 0.3, 0.1]), logits([0.2, 0.3, 0.5])
    one = 0.6 * math.log(0.6 / 0.2) + 0.4 * math.log(0.4 / 0.8)
    assert float(kl_top_k(student, teacher, ones(1, 1), k=1)) == pytest.approx(one)


@pytest.mark.parametrize("forward", [0.0, 0.5, 1.0])
def test_top_k_is_a_lower_bound_and_meets_the_whole(forward: float) -> None:
    student, teacher, mask = random(2, 3, 40).detach(), random(2, 3, 40, seed=1).detach(), ones(2, 3)
    whole = float(kl_full(student, teacher, mask, forward))
    parts = [float(kl_top_k(student, teacher, mask, k, forward)) for k in (1, 5, 20, 39)]
    assert parts == sorted(parts)
    assert parts[-1] <= whole + 1e-9
    assert float(kl_top_k(student, teacher, mask, 40, forward)) == pytest.approx(whole, abs=1e-5)


def test_the_teacher_gets_no_gradient() -> None:
    student, teacher = random(1, 2, 5), random(1, 2, 5, seed=1)
    (kl_full(student, teacher, ones(1, 2)) + kl_top_k(student, teacher, ones(1, 2), 2)).backward()
    assert teacher.grad is None
    assert student.grad is not None


def test_sampled_advantage_is_clipped_masked_and_detached() -> None:
    teacher, old = torch.tensor([[-1.0, -0.1, -20.0, 0.0]]), torch.tensor([[-2.0, -0.3, -1.0, math.nan]])
    advantage = sampled_advantage(teacher.requires_grad_(), old, torch.tensor([[1, 1, 1, 0]]), clip=5.0)
    assert advantage.tolist()[0] == pytest.approx([1.0, 0.2, -5.0, 0.0])
    assert not advantage.requires_grad


def test_anchor_by_hand() -> None:
    loss = anchor_nll(logits([0.5, 0.5], [0.25, 0.75]), torch.tensor([[0, 1]]), ones(1, 2))
    assert float(loss) == pytest.approx(-(math.log(0.5) + math.log(0.75)) / 2)


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [
        (1.0, 1.0, -1.0),
        (1.5, 1.0, -1.28),
        (0.5, 1.0, -0.5),
        (0.5, -1.0, 0.8),
        (1.5, -1.0, 1.5),
        (9.0, -1.0, 3.0),
    ],
)
def test_clip_by_hand(ratio: float, advantage: float, expected: float) -> None:
    current, old = torch.tensor([[math.log(ratio) - 1.0]]), torch.tensor([[-1.0]])
    loss = clipped_policy_loss(current, old, old, torch.tensor([[advantage]]), ones(1, 1))
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_stale_samples_count_less_and_never_more_than_the_cap() -> None:
    old, behaviour = torch.tensor([[0.0, 0.0, 0.0]]), torch.tensor([[math.log(2.0), 0.0, -9.0]])
    assert importance_weights(old, behaviour).tolist()[0] == pytest.approx([0.5, 1.0, 2.0])
    loss = clipped_policy_loss(old, old, behaviour, torch.ones(1, 3), ones(1, 3), ClipBounds(weight_cap=2.0))
    assert float(loss) == pytest.approx(-(0.5 + 1 + 2) / 3)


def test_k3_by_hand_and_never_negative() -> None:
    current, reference = torch.tensor([[0.0, -1.0, -50.0]]), torch.tensor([[0.0, -2.0, 0.0]])
    assert k3(current, reference).tolist()[0] == pytest.approx([0.0, math.exp(-1) - 1 + 1, 10.0])
    assert float(k3(random(3, 4).detach(), random(3, 4, seed=2)).min()) >= 0


def test_off_policy_kl_by_hand() -> None:
    current, old, reference = torch.tensor([[-1.0]]), torch.tensor([[-1.5]]), torch.tensor([[-2.0]])
    expected = math.exp(0.5) * (math.exp(-1.0) - 1 + 1.0)
    assert float(kl_to_reference(current, old, reference, ones(1, 1))) == pytest.approx(expected)


MASK = [[1, 1, 0], [1, 0, 0]]


def _losses() -> dict[str, object]:
    mask, tokens = torch.tensor(MASK), torch.tensor([[0, 3, 1], [2, 0, 0]])
    teacher, other = random(2, 3, 5, seed=3).detach(), random(2, 3, seed=4).detach()
    return {
        "full": lambda x, m=mask: kl_full(x, teacher, m),
        "mixed": lambda x, m=mask: kl_full(x, teacher, m, 0.5),
        "top_k": lambda x, m=mask: kl_top_k(x, teacher, m, 2),
        "anchor": lambda x, m=mask: anchor_nll(x, tokens, m),
        "clip": lambda x, m=mask: clipped_policy_loss(x[..., 0], x[..., 0].detach() + 0.05, other, other, m),
        "kl": lambda x, m=mask: kl_to_reference(x[..., 0], x[..., 0].detach(), other, m),
    }


@pytest.mark.parametrize("name", ["full", "mixed", "top_k", "anchor"])
def test_gradients_match_finite_differences(name: str) -> None:
    assert torch.autograd.gradcheck(_losses()[name], (random(2, 3, 5),))


def test_clip_and_kl_gradients_match_finite_differences() -> None:
    fixed, other, mask = random(2, 3, seed=5).detach(), random(2, 3, seed=4).detach(), torch.tensor(MASK)
    assert torch.autograd.gradcheck(lambda x: clipped_policy_loss(x, fixed, fixed, other, mask), (random(2, 3),))
    assert torch.autograd.gradcheck(lambda x: kl_to_reference(x, fixed, other, mask), (random(2, 3),))


@pytest.mark.parametrize("name", ["full", "mixed", "top_k", "anchor", "clip", "kl"])
def test_all_masked_is_zero_and_nan_stays_behind_the_mask(name: str) -> None:
    poisoned = random(2, 3, 5).detach()
    poisoned[0, 2] = math.nan
    poisoned[1, 1:] = math.inf
    for mask in (torch.zeros(2, 3, dtype=torch.long), torch.tensor(MASK)):
        x = poisoned.clone().requires_grad_()
        loss = _losses()[name](x, mask)  # type: ignore[operator]
        loss.backward()
        assert math.isfinite(float(loss.detach()))
        assert torch.isfinite(x.grad).all()
        assert mask.any() or float(loss.detach()) == 0.0


@pytest.mark.parametrize("name", ["full", "mixed", "top_k", "anchor", "clip", "kl"])
def test_padding_changes_nothing(name: str) -> None:
    losses, x = _losses(), random(2, 3, 5).detach()
    changed = x.clone()
    changed[0, 2] += 7.0
    changed[1, 1:] -= 3.0
    assert float(losses[name](x)) == float(losses[name](changed))  # type: ignore[operator]


def test_the_registry_names_what_there_is_and_nothing_else() -> None:
    assert set(ALGORITHMS) == {"opd"}
    assert set(algorithm("opd").supports) == {"full", "top_k", "sampled"}
    with pytest.raises(InvalidInputError):
        algorithm("grpo")
