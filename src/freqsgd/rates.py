"""The rate law: the one place where a token's frequency becomes its learning rate.

    eta_k = min(max_lr, lr / p_k ** power)               (the step size of Theorems 1 and 3)

``p_k`` is the frequency of token k per sample and ``power`` is 1/2 in the paper, whose
``alpha / sqrt(T)`` is our ``lr`` and whose ``1 / (4 L)`` is our ``max_lr``.

Weight decay follows frequency too. A step subtracts, besides ``eta_k * g_k``, the part

    min(1/2, eta_k * weight_decay * q_k * p_k ** -weight_decay_power)

of a row, where ``q_k`` is the frequency of k in the batch at hand. Since E[q_k] = p_k, that
minimises ``loss + sum_k weight_decay / 2 * p_k ** (1 - weight_decay_power) * |theta_k| ** 2``
although only the rows of the batch are touched: power 1 is ordinary L2, power 0 decays a row
each time it occurs.

CFAdam (:class:`AdamLaw`) uses the same law, on gradients that are divided by the root of a second
moment per column. In step t, which holds m tokens, of n in all, each occurrence o of token k adds

    s_j   = beta2 * s_j + (1 - beta2) * sum_o g_oj ** 2
    u_oj  = g_oj / (sqrt(s_j / (1 - beta2 ** t)) + eps)
    p_k   = max(c_k / n, (1 - beta2) / m)                          eta_k = lr / sqrt(p_k)
    theta_kj -= eta_k * u_oj * min(1, clip * sqrt(max(p_k, 1 / m)) / rms_j(u_oj))

so p_k * s_j stands for Adam's second moment and ``lr`` is Adam's. The floor of p_k is Adam's
memory of 1 / (1 - beta2) steps. The bound keeps the step of an occurrence within
``clip * lr / sqrt(min(1, m p_k))``: the order of Adam's largest step for a row that so many of the
steps hold. Weight decay is decoupled as in AdamW: a row loses the part
``min(1/2, lr * weight_decay * q_k * (c_k / n) ** -weight_decay_power)``, which for power 1 is
AdamW's ``lr * weight_decay`` per step on average.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:  # torch takes a second to import
    from torch import Tensor

__all__ = ["AdamLaw", "RateLaw", "paper_rates", "token_frequencies"]

MAX_DECAY = 0.5  # the largest part of a row that one step of weight decay may take


def _law(
    minimum: Callable[[Any, Any], Any], maximum: Callable[[Any, Any], Any]
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Write the law for one kind of number, given how the smaller and the larger is taken."""

    def rate(p: Any, lr: float, power: float, max_lr: float) -> Any:
        return minimum(lr / p**power, max_lr)

    def decay(p: Any, q: Any, eta: Any, weight_decay: float, power: float) -> Any:
        return minimum(eta * weight_decay * q / p**power, MAX_DECAY)

    def bound(p: Any, rare: float, clip: float) -> Any:
        return clip * clip * maximum(p, rare)

    return rate, decay, bound


scalar_rate, scalar_decay, scalar_bound = _law(min, max)  # for floats: what the kernels compile
_rate, _decay, _bound = _law(  # for floats, numpy arrays and torch tensors
    lambda x, cap: min(x, cap) if isinstance(x, float) else x.clip(max=cap),
    lambda x, low: max(x, low) if isinstance(x, float) else x.clip(min=low),
)


@dataclass(frozen=True)
class RateLaw:
    """The law with its constants: what a parameter group's options amount to.

    Args:
        lr: rate of a token that every sample holds, and of every weight that is not a row of a
            table (alpha / sqrt(T) in the paper)
        power: how fast the rate grows as the frequency falls (1/2 in the paper; 0 is plain SGD)
        max_lr: the largest rate of any token (1 / (4 L) in the paper); None for no cap
        weight_decay: strength of the L2 penalty
        weight_decay_power: how the penalty is spread over frequencies; 1 is ordinary L2

    Example:
        >>> RateLaw(lr=0.1).rate(torch.tensor([1.0, 0.25, 0.01]))
        tensor([0.1000, 0.2000, 1.0000])
    """

    lr: float
    power: float = 0.5
    max_lr: float | None = None
    weight_decay: float = 0.0
    weight_decay_power: float = 1.0
    _powers: ClassVar[dict[str, float]] = {"power": 1.0, "weight_decay_power": 1.0}  # at most

    def __post_init__(self) -> None:
        for name in ("lr", "power", "max_lr", "weight_decay", "weight_decay_power"):
            value = getattr(self, name)
            if type(value) is not float and not (name == "max_lr" and value is None):
                object.__setattr__(self, name, number(name, value))
        for name in ("lr", "weight_decay"):
            value = getattr(self, name)
            if not 0.0 <= value < math.inf:
                raise ValueError(f"{name} must be a finite number >= 0, got {value}")
        for name, most in self._powers.items():
            value = getattr(self, name)
            if not 0.0 <= value <= most:
                raise ValueError(f"{name} must lie in [0, {most:g}], got {value}")
        if not self.cap > 0.0:
            raise ValueError(f"max_lr must be > 0 (or None for no cap), got {self.max_lr}")

    @property
    def cap(self) -> float:
        """``max_lr`` as a number."""
        return math.inf if self.max_lr is None else self.max_lr

    def rate(self, p: Any) -> Any:
        """The learning rate of tokens of frequency ``p`` (a float, numpy array or tensor)."""
        return _rate(p, self.lr, self.power, self.cap)

    def decay(self, p: Any, q: Any) -> Any:
        """The part of a row that weight decay takes, for frequency ``p`` and ``q`` in the batch."""
        return _decay(p, q, self.rate(p), self.weight_decay, self.weight_decay_power)


@dataclass(frozen=True)
class AdamLaw(RateLaw):
    """The law of CFAdam: frequencies and one second moment per column in place of Adam's.

    Args:
        lr: learning rate, as in Adam
        weight_decay: strength of the decoupled weight decay, as in AdamW
        weight_decay_power: how decay is spread over frequencies; 1 treats all rows alike, as AdamW,
            and 1.5 is hardest on rare rows, as the L2 penalty of Adam
        beta2: decay of the second moments
        eps: added to their roots
        clip: bound on a step, in units of Adam's step for a row as frequent; None for no bound
    """

    beta2: float = 0.999
    eps: float = 1e-8
    clip: float | None = 3.0
    _powers: ClassVar[dict[str, float]] = {"power": 1.0, "weight_decay_power": 1.5}

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("beta2", "eps", "clip"):
            if not (name == "clip" and self.clip is None):
                object.__setattr__(self, name, number(name, getattr(self, name)))
        if not 0.0 <= self.beta2 < 1.0:
            raise ValueError(f"beta2 must lie in [0, 1), got {self.beta2}")
        if not 0.0 < self.eps < math.inf:  # 0 would divide by zero where a column has no gradient
            raise ValueError(f"eps must be a finite number > 0, got {self.eps}")
        if not self.largest > 0.0:
            raise ValueError(f"clip must be > 0 (or None for no bound), got {self.clip}")

    @property
    def largest(self) -> float:
        """``clip`` as a number."""
        return math.inf if self.clip is None else self.clip

    def moment(self, s: Any, squares: Any) -> Any:
        """Return the second moments after a step whose squares sum to ``squares``."""
        return self.beta2 * s + (1 - self.beta2) * squares

    def scale(self, s: Any, steps: Any) -> Any:
        """Return what each column is multiplied by, given the second moments after ``steps``."""
        return 1 / ((s / (1 - self.beta2**steps)) ** 0.5 + self.eps)

    def least(self, tokens: float) -> float:
        """Return the frequency that a rarer row is taken to have in a step of so many tokens."""
        return (1 - self.beta2) * self.rare(tokens)

    def rare(self, tokens: float) -> float:
        """Return the frequency of a row that occurs once in every step of so many tokens."""
        return 1 / max(tokens, 1)

    def bound(self, p: Any, tokens: float) -> Any:
        """Return the largest mean square of a scaled gradient row of frequency ``p``."""
        return _bound(p, self.rare(tokens), self.largest)

    def decay(self, p: Any, q: Any) -> Any:
        """Return the part of a row that weight decay takes, at ``lr`` for every frequency."""
        return _decay(p, q, self.lr, self.weight_decay, self.weight_decay_power)


def check_counting(
    *, count: str = "occurrence", tokens_per_sample: int = 1, halflife: float | None = None
) -> None:
    """Refuse options of counting that make no sense."""
    if count not in ("occurrence", "batch"):
        raise ValueError(f"count must be 'occurrence' or 'batch', got {count!r}")
    whole = isinstance(tokens_per_sample, int | np.integer)
    if not whole or isinstance(tokens_per_sample, bool) or tokens_per_sample < 1:
        raise ValueError(f"tokens_per_sample must be an integer >= 1, got {tokens_per_sample!r}")
    if halflife is not None and not 0 < number("halflife", halflife) < math.inf:
        raise ValueError(f"halflife must be a finite number > 0 (or None), got {halflife}")


def paper_rates(alpha: float, T: int, L: float) -> tuple[float, float]:
    """Turn the constants of the paper's step size into ``(lr, max_lr)``.

    The paper writes ``eta_k = min(1 / (4 L), alpha / sqrt(T p_k))``.

    Args:
        alpha: the step-size constant of Theorems 1 and 3
        T: number of iterations planned
        L: smoothness of the loss

    Example:
        >>> paper_rates(alpha=2.0, T=400, L=0.5)
        (0.1, 0.5)
    """
    for name, value in (("alpha", alpha), ("T", T), ("L", L)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be a finite number > 0, got {value}")
    return alpha / math.sqrt(T), 1 / (4 * L)


def token_frequencies(ids: Tensor, num_tokens: int, samples: int | None = None) -> Tensor:
    """Count how often each token occurs per sample: what :class:`freqsgd.FASGD` asks for.

    Args:
        ids: the tokens of the training set, one sample per row
        num_tokens: size of the table; every id must be below it
        samples: number of samples the ids come from (default ``ids.shape[0]``)

    Returns:
        A float32 tensor of ``num_tokens`` frequencies. A token that never occurs is given one
        occurrence, so that its rate is defined.

    Example:
        >>> token_frequencies(torch.tensor([[0, 2], [0, 3]]), num_tokens=5)
        tensor([1.0000, 0.5000, 0.5000, 0.5000, 0.5000])
    """
    check_ids(ids, num_tokens)
    if samples is None:
        samples = ids.shape[0] if ids.dim() else 1
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples}")
    counts = ids.reshape(-1).long().bincount(minlength=num_tokens)
    return (counts.clamp(min=1).double() / samples).float()


def number(name: str, value: Any) -> float:
    """Return an option as a float; refuse what only looks like a number, such as ``"0.1"``."""
    single = math.prod(getattr(value, "shape", (0,))) == 1  # a tensor or array of one number
    plain = value.item() if single else value
    if isinstance(plain, bool) or not isinstance(plain, float | numbers.Real):
        raise ValueError(f"{name} must be a number, got {value!r}")
    return float(plain)


def check_ids(ids: Tensor, rows: int) -> None:
    """Refuse ids that are not integers in ``[0, rows)``."""
    check_integers("ids", ids)
    if ids.numel():
        low, high = (int(x) for x in ids.long().aminmax())
        if low < 0 or high >= rows:
            raise IndexError(f"id {low if low < 0 else high} is out of range for {rows} rows")


def check_integers(name: str, x: Tensor) -> None:
    """Refuse a tensor of anything but integers."""
    import torch

    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name} must be a tensor of integers, got {type(x).__name__}")
    if x.is_floating_point() or x.is_complex() or x.dtype == torch.bool:
        raise TypeError(f"{name} must be integers, got {x.dtype}")
