"""Owns LBFGS: limited-memory BFGS over all parameters as one
vector, with an optional Wolfe search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch

from .._tensor.tensor import Tensor
from .._tensor.types import Number
from ._checks import check_lr
from ._wolfe import Length, strong_wolfe
from .optimizer import Optimizer, ParamsT

__all__ = ["LBFGS"]

_MEMORY = ["d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss"]


def _real(value: Tensor) -> Tensor:
    """A view of a complex tensor by its real and imaginary parts; a real one as it is."""
    return mindtorch.view_as_real(value) if value.is_complex() else value


class LBFGS(Optimizer):
    """Quasi-Newton steps; `step` needs a closure that clears
    gradients, runs backward, gives the loss."""

    def __init__(
        self,
        params: ParamsT,
        lr: Number = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _gradient(self) -> Tensor:
        parts = []
        for p in self._params:
            grad = mindtorch.zeros_like(p.data) if p.grad is None else p.grad
            grad = grad.to_dense() if grad.is_sparse else grad
            parts.append(_real(grad).reshape(-1))
        return mindtorch.cat(parts)

    def _move(self, length: Length, direction: Tensor) -> None:
        start = 0
        for p in map(_real, self._params):
            size = p.numel()
            p.add_(direction[start : start + size].reshape(p.shape), alpha=float(length))
            start += size

    def step(self, closure: Callable[[], Any] | None = None) -> Tensor:
        """Runs up to max_iter iterations; gives the first loss."""
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        with mindtorch.no_grad():
            return self._minimize(closure)

    def _minimize(self, closure: Callable[[], Any]) -> Tensor:
        group = self.param_groups[0]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def evaluate() -> tuple[float, Any]:
            with mindtorch.enable_grad():
                value = closure()
            return float(value), self._gradient()

        with mindtorch.enable_grad():
            first = closure()
        loss, grad = float(first), self._gradient()
        state["func_evals"] += 1
        evaluations, iterations = 1, 0
        if grad.abs().max() <= group["tolerance_grad"]:
            return first
        memory = {name: state.get(name) for name in _MEMORY}
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            direction = self._direction(state, memory, grad)
            before = loss
            memory["prev_flat_grad"], memory["prev_loss"] = grad.clone(), loss
            length = group["lr"]
            if state["n_iter"] == 1:
                length = min(1.0, 1.0 / grad.abs().sum()) * length
            memory["d"], memory["t"] = direction, length
            slope = grad.dot(direction)
            if slope > -group["tolerance_change"]:
                break
            last = iterations == group["max_iter"]
            loss, grad, length, used = self._advance(
                evaluate, direction, length, loss, grad, slope, last, evaluations
            )
            memory["t"] = length
            evaluations += used
            state["func_evals"] += used
            if (
                last
                or evaluations >= group["max_eval"]
                or self._done(grad, direction, length, loss, before)
            ):
                break
        state.update(memory)
        return first

    def _done(
        self, grad: Tensor, direction: Tensor, length: Length, loss: float, before: float
    ) -> bool:
        group = self.param_groups[0]
        return bool(
            grad.abs().max() <= group["tolerance_grad"]
            or direction.mul(length).abs().max() <= group["tolerance_change"]
            or abs(loss - before) < group["tolerance_change"]
        )

    def _advance(
        self,
        evaluate: Callable[[], tuple[float, Any]],
        direction: Tensor,
        length: Length,
        loss: float,
        grad: Tensor,
        slope: Tensor,
        last: bool,
        evaluations: int,
    ) -> tuple[float, Any, Length, int]:
        """Moves along the direction: by `length`, or by what the Wolfe search finds.

        Where `last` moved by `length`, nobody asks for the loss: the closure is not run.
        """
        group = self.param_groups[0]
        if group["line_search_fn"] is None:
            self._move(length, direction)
            if last:
                return loss, grad, length, 0
            loss, grad = evaluate()
            return loss, grad, length, 1
        if group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        origin = [p.clone() for p in self._params]

        def at(t: Length) -> tuple[float, Any]:
            self._move(t, direction)
            result = evaluate()
            for p, start in zip(self._params, origin, strict=True):
                p.copy_(start)
            return result

        loss, grad, length, used = strong_wolfe(
            at,
            length,
            direction,
            loss,
            grad,
            slope,
            group["tolerance_change"],
            group["max_eval"] - evaluations,
        )
        self._move(length, direction)
        return loss, grad, length, used

    def _direction(self, state: dict[str, Any], memory: dict[str, Any], grad: Tensor) -> Tensor:
        """-H g by the two-loop recursion over the kept pairs (y, s)."""
        if state["n_iter"] == 1:
            memory.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return grad.neg()
        history = self.param_groups[0]["history_size"]
        y = grad.sub(memory["prev_flat_grad"])
        s = memory["d"].mul(memory["t"])
        product = y.dot(s)
        if product > 1e-10:
            if len(memory["old_dirs"]) == history:
                for name in ("old_dirs", "old_stps", "ro"):
                    memory[name].pop(0)
            memory["old_dirs"].append(y)
            memory["old_stps"].append(s)
            memory["ro"].append(1.0 / product)
            memory["H_diag"] = product / y.dot(y)
        weights = state.setdefault("al", [None] * history)
        pairs = list(zip(memory["old_dirs"], memory["old_stps"], memory["ro"], strict=True))
        q = grad.neg()
        for i, (y, s, ro) in reversed(list(enumerate(pairs))):
            weights[i] = s.dot(q) * ro
            q = q.add(y, alpha=-weights[i])
        q = q.mul(memory["H_diag"])
        for (y, s, ro), weight in zip(pairs, weights, strict=False):
            q = q.add(s, alpha=weight - y.dot(q) * ro)
        return q
