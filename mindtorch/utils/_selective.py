"""Owns selective checkpoints: results of chosen operators are saved, the others computed again."""

from __future__ import annotations

import enum
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from .._dispatch.dispatch_modes import TorchDispatchMode
from .._tensor.tensor import Tensor
from ..ops.namespaces import OpOverload, OpOverloadPacket
from ._pytree import tree_map_only


class CheckpointPolicy(enum.Enum):
    """What a selective checkpoint does with the result of an operator."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVED = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_ON_HOST = (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)


class SelectiveCheckpointContext:
    """What a policy is told beside the operator and its arguments."""

    __module__ = "mindtorch.utils.checkpoint"

    def __init__(self, *, is_recompute: bool, op_output: object = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class _Saved:
    """One tensor without its history, on the host where the policy wants it there."""

    def __init__(self, tensor: Tensor, host: bool):
        self.device, self.version = tensor.device, tensor._version
        self.alias = tensor.detach()
        self.copy = tensor.detach().to("cpu") if host else None

    def tensor(self, changed: bool) -> Tensor:
        """The tensor where it was; RuntimeError where it was written to and not `changed`."""
        if self.copy is not None:
            return self.copy.to(self.device)
        if not changed and self.alias._version != self.version:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated"
            )
        return self.alias.detach()


# By operator, in the order of calls: the result with its tensors saved, or None.
_Results = defaultdict[OpOverload, deque[tuple[Any] | None]]


class _Saving(TorchDispatchMode):
    """The first run: asks what to do with each result."""

    def __init__(self, policy: Callable[..., CheckpointPolicy | bool], results: _Results):
        super().__init__()
        self.policy, self.results = policy, results

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.overloadpacket.__name__ == "detach":  # which autograd makes of what it keeps
            return result
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        choice = self.policy(context, func, *args, **kwargs)
        saved = None
        if choice is True or choice in _SAVED or choice in _ON_HOST:
            host = choice in _ON_HOST
            saved = (tree_map_only(Tensor, lambda tensor: _Saved(tensor, host), result),)
        self.results[func].append(saved)
        return result


class _Restoring(TorchDispatchMode):
    """The second run: gives what was saved, and computes the rest."""

    def __init__(self, results: _Results, changed: bool):
        super().__init__()
        self.results, self.changed = results, changed

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ == "detach":
            return func(*args, **(kwargs or {}))
        if func not in self.results:
            raise RuntimeError(f"{func} encountered during backward, but not found in storage")
        if not self.results[func]:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any"
                " region computed under selective activation checkpoint."
            )
        saved = self.results[func].popleft()
        if saved is None:
            return func(*args, **(kwargs or {}))
        return tree_map_only(_Saved, lambda entry: entry.tensor(self.changed), saved[0])


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[TorchDispatchMode, TorchDispatchMode]:
    """Contexts of the two runs, for `checkpoint`'s `context_fn`.

    The policy is called as `policy(context, operator, *args, **kwargs)` for each operator of the
    first run, or it is a list of the operators that are saved. A product is asked for under the
    name that torch gives it (`mm`, `addmm`, `bmm`, `convolution`) with the arguments of the row.
    TypeError for any other policy, ValueError for a list of other things than overloads.
    """
    policy = policy_fn_or_list
    if isinstance(policy, list):
        policy = _of_list(policy)
    elif not callable(policy):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    results: _Results = defaultdict(deque)
    return _Saving(policy, results), _Restoring(results, allow_cache_entry_mutation)


def _of_list(operators: Sequence[object]) -> Callable[..., bool]:
    for operator in operators:
        if not isinstance(operator, OpOverload):
            more = ""
            if isinstance(operator, OpOverloadPacket):
                more = (
                    "Please update the OpOverloadPacket to a specific OpOverload.For example, if"
                    " you have `torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                )
            raise ValueError(
                f"Expected op in `op_list` to be an OpOverload but got: {operator} of type"
                f" {type(operator)}. {more}"
            )
    return lambda context, operator, *args, **kwargs: operator in operators
