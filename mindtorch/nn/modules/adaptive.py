"""Owns AdaptiveLogSoftmaxWithLoss: a softmax over frequent classes, and clusters of rare ones."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._tensor.device import DeviceLike
from ..._tensor.dtype import dtype as Dtype
from ..._tensor.tensor import Tensor
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """input `[N, in_features]`, target `[N]` → (log-probability of the target `[N]`, mean loss)."""

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Any,
        div_value: float = 4.0,
        head_bias: bool = False,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        ordered = cutoffs == sorted(set(cutoffs)) and all(int(c) == c for c in cutoffs)
        if not ordered or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs: list[Any] = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters: int = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        more: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head: Linear = Linear(in_features, self.head_size, bias=head_bias, **more)
        self.tail: ModuleList = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            down = Linear(in_features, width, bias=False, **more)
            self.tail.append(Sequential(down, Linear(width, size, bias=False, **more)))

    def reset_parameters(self) -> None:
        """Draws every projection anew."""
        self.head.reset_parameters()
        for down, out in self.tail:
            down.reset_parameters()
            out.reset_parameters()

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities of all classes, `[N, n_classes]`."""
        head = F.log_softmax(self.head(input), dim=1)
        out = input.new_empty((head.size(0), self.n_classes))
        out[:, : self.shortlist_size] = head[:, : self.shortlist_size]
        for i, tail in enumerate(self.tail):
            place = self.shortlist_size + i
            part = F.log_softmax(tail(input), dim=1) + head[:, place : place + 1]
            out[:, self.cutoffs[i] : self.cutoffs[i + 1]] = part
        return out

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        single = target_.dim() == 0
        rows = input_.unsqueeze(0) if single else input_
        target = target_.unsqueeze(0) if single else target_
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if not single and rows.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input_.dim() != target_.dim() + 1:
            rank = target_.dim()
            raise RuntimeError(
                f"{rank}D target tensor expects {rank + 1}D input tensors, but found inputs with"
                f" size {input_.size()}"
            )
        output = self._of_targets(rows, target)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _of_targets(self, rows: Tensor, target: Tensor) -> Tensor:
        """The log-probability of each row's target; a cluster without targets is not run."""
        rare, places = rows.new_zeros(len(target)), target
        count = int((target < self.shortlist_size).logical_and(target >= 0).sum())
        for i, tail in enumerate(self.tail):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            mask = (target >= low) & (target < high)
            at = mask.nonzero().squeeze(1)
            count += len(at)
            if len(at):
                part = F.log_softmax(tail(rows.index_select(0, at)), dim=1)
                log_probs = part.gather(1, (target[at] - low).unsqueeze(1)).squeeze(1)
                rare = rare.index_copy(0, at, log_probs)
                places = places.masked_fill(mask, self.shortlist_size + i)
        if count != len(target):
            low, high = target.min().item(), target.max().item()
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], "
                f"but values in range [{low}, {high}] were found. "
            )
        head = F.log_softmax(self.head(rows), dim=1)
        return rare + head.gather(1, places.unsqueeze(1)).squeeze(1)

    def predict(self, input: Tensor) -> Any:
        """The likeliest class of each row."""
        return self.log_prob(input).argmax(1)
