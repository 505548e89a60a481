"""Owns Optimizer: parameter groups, state, state dicts, the walk
of one step; refuses update formulas."""

from __future__ import annotations

import functools
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, ClassVar

import mindtorch
from mindtorch._functional.queries import typename
from mindtorch.profiler import record_function

from .._tensor.dtype import dtype as Dtype
from .._tensor.tensor import Tensor
from ..utils._foreach_utils import _group_tensors_by_device_and_dtype
from ._hooks import (
    HookedOptimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from ._together import update

__all__ = [
    "Optimizer",
    "ParamsT",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "required",
]

ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
_params_t = ParamsT
Group = dict[str, Any]


class _Required:
    """Marks a default that every parameter group has to give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


# Options that groups saved by earlier versions may lack; the others are missed where they are read.
_LATER = ("nesterov", "amsgrad", "maximize", "foreach", "capturable", "differentiable",
          "decoupled_weight_decay", "fused")  # fmt: skip


class Optimizer(HookedOptimizer):
    """Base of every optimizer: subclasses give `step`, or `_update` for one parameter."""

    state: Any
    param_groups: list[Group]
    defaults: dict[str, Any]
    # What follows the class's name in the error for a sparse gradient; None where one is taken.
    sparse_refusal: str | None = "does not support sparse gradients"
    refuses_complex = False
    later_options: tuple[str, ...] = ()
    _later: ClassVar[dict[str, Any]] = {"foreach": None, "fused": None}
    # What a captured step needs on a device, as the error for one on the CPU lists it.
    by_lists = False  # the formula takes parameters together, see `_together`
    capturable_tensors = "params and state_steps"
    capturable_devices: ClassVar = ["cuda", "xpu", "hpu", "privateuseone", "xla"]

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist: Any, with_indices: bool = False) -> Any:
        """Lists that run side by side, split by device and dtype."""
        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hooks()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {typename(params)}"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        listed: list[Any] = list(params)
        if not listed:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(listed[0], dict):
            listed = [{"params": listed}]
        for group in listed:
            self.add_param_group(group)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hooks()
        options = (*_LATER, *self.later_options) if "foreach" in self.defaults else ()
        for group in self.param_groups:
            for name in options:
                if name in self.defaults:
                    group.setdefault(name, self._later.get(name, False))
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        blocks = []
        for i, group in enumerate(self.param_groups):
            lines = [f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
            blocks.append(f"\nParameter Group {i}\n{''.join(lines)}")
        return f"{type(self).__name__} ({''.join(blocks)})"

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops (or zeroes) the gradient of every parameter."""
        with record_function(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"):
            for group in self.param_groups:
                grads = []
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    if set_to_none:
                        p.grad = None
                        continue
                    if p.grad.grad_fn is not None:
                        p.grad.detach_()
                    else:
                        p.grad.requires_grad_(False)
                    grads.append(p.grad)
                if grads:
                    mindtorch._foreach_zero_(grads)

    def add_param_group(self, param_group: Group) -> None:
        """Adds a group; TypeError and ValueError for what can't be optimized."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        _name_params(param_group)
        self._check_params(param_group["params"])
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        params = param_group["params"]
        if len(params) != len({id(p) for p in params}):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                stacklevel=3,
            )
        named = "param_names" in param_group
        if any(("param_names" in group) is not named for group in self.param_groups):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group"
                f" {'with' if named else 'without'} names to the optimizer"
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in known for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _check_params(self, params: list[Any]) -> None:
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {typename(p)}"
                )
            if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient, outside autograd; a closure is
        called first and its loss given."""
        if type(self)._update is Optimizer._update:
            raise NotImplementedError
        loss = None
        if closure is not None:
            with mindtorch.enable_grad():
                loss = closure()
        recording = bool(self.defaults.get("differentiable", False))
        recording = recording and mindtorch.is_grad_enabled()
        with mindtorch.enable_grad() if recording else mindtorch.no_grad():
            for group in self.param_groups:
                self._check_capturable(group)
                for p in update(self, group):
                    if p.grad is not None:
                        if p.grad.is_sparse and self.sparse_refusal:
                            name = getattr(self, "_refuses_as", type(self).__name__)
                            raise RuntimeError(f"{name} {self.sparse_refusal}")
                        if p.is_complex():
                            self._update_parts(p, p.grad, group)
                        else:
                            self._update(p, p.grad, group)
        return loss

    def _check_capturable(self, group: Group) -> None:
        """AssertionError for a step to be captured of parameters on the CPU, in torch's words."""
        if not group.get("capturable") or group.get("fused"):
            return
        if any(p.grad is not None and p.device.type == "cpu" for p in group["params"]):
            raise AssertionError(
                f"If capturable=True, {self.capturable_tensors} must be on supported devices: "
                f"{self.capturable_devices}."
            )

    def _update_parts(self, p: Tensor, grad: Tensor, group: Group) -> None:
        """Updates a complex parameter by its real and imaginary parts; its state is complex.

        RuntimeError where the formula has no such form.
        """
        if self.refuses_complex:
            raise RuntimeError(f"{type(self).__name__} does not support complex parameters")
        parts, state = mindtorch.view_as_real(p), self.state[p]
        views = {name: _parts(value) for name, value in state.items()}
        self.state[parts] = dict(views)
        try:
            self._update(parts, mindtorch.view_as_real(grad), group)
        finally:
            for name, value in self.state.pop(parts).items():
                if name not in views or value is not views[name]:
                    whole = isinstance(value, Tensor) and value.shape == parts.shape
                    state[name] = mindtorch.view_as_complex(value) if whole else value

    def _update(self, p: Any, grad: Any, group: Group) -> None:
        """Updates one parameter in place."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Gives {"state": by parameter number, "param_groups"}; tensors are not copied."""
        for hook in self._hooks("state_dict_pre").values():
            hook(self)
        order: dict[int, int] = {}
        groups, first = [], 0
        for group in self.param_groups:
            places = {id(p): i for i, p in enumerate(group["params"], first)}  # of a twin: the last
            order, first = places | order, first + len(group["params"])
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [order[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {
            (order[id(key)] if isinstance(key, Tensor) else key): value
            for key, value in self.state.items()
        }
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._hooks("state_dict_post").values():
            replaced = hook(self, result)
            result = result if replaced is None else replaced
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads what state_dict gave; state tensors move to their parameter's device and dtype."""
        state_dict = state_dict.copy()
        for hook in self._hooks("load_state_dict_pre").values():
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        saved = deepcopy(state_dict["param_groups"])
        _check_groups(self.param_groups, saved)
        numbers = chain.from_iterable(group["params"] for group in saved)
        params = chain.from_iterable(group["params"] for group in self.param_groups)
        by_number = dict(zip(numbers, params, strict=True))
        state: Any = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_number:
                p = by_number[key]
                state[p] = _cast(p, value, _group_of(saved, key))
            else:
                state[key] = value
        groups = []
        for local, new in zip(self.param_groups, saved, strict=True):
            new["params"] = local["params"]
            if "param_names" in local:
                new.setdefault("param_names", local["param_names"])
            groups.append(new)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._hooks("load_state_dict_post").values():
            hook(self)


def _parts(value: Any) -> Any:
    """A complex tensor `[...]` as a view `[..., 2]`; anything else as it is."""
    complex_one = isinstance(value, Tensor) and value.is_complex()
    return mindtorch.view_as_real(value) if complex_one else value


def _name_params(group: Group) -> None:
    """Makes `params` a list; takes the names off when it holds (name, tensor) pairs."""
    params = group["params"]
    if isinstance(params, Tensor):
        group["params"] = [params]
        return
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering "
            "of tensors in sets will change between runs. Please use a list instead."
        )
    listed = list(params)
    named = [item for item in listed if isinstance(item, tuple)]
    if named and len(named) != len(listed):
        raise ValueError(
            "all optimizer params should be with/without names. Some param names are missing"
        )
    if named:
        group["params"] = [item[1] for item in listed]
        group["param_names"] = [item[0] for item in listed]
    else:
        group["params"] = listed


def _check_groups(groups_here: list[Group], saved: list[Group]) -> None:
    if len(groups_here) != len(saved):
        raise ValueError("loaded state dict has a different number of parameter groups")
    if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups_here, saved, strict=True)):
        raise ValueError(
            "loaded state dict contains a parameter group that doesn't match the size of "
            "optimizer's group"
        )


def _group_of(groups: list[Group], number: int) -> Group:
    return next(group for group in groups if number in group["params"])


def _cast(p: Tensor, value: Any, group: Group, key: str | None = None) -> Any:
    if isinstance(value, Tensor):
        if key == "step":  # a count: stays float32, on the CPU unless the step is captured
            captured = group.get("capturable") or group.get("fused")
            return value.to(dtype=mindtorch.float32, device=p.device) if captured else value
        if p.is_floating_point():
            return value.to(dtype=p.dtype, device=p.device)
        return value.to(device=p.device)
    if isinstance(value, dict):
        return {k: _cast(p, v, group, k) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_cast(p, v, group) for v in value)
    return value


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A step of `differentiable=True` with gradients, any other without."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with mindtorch.set_grad_enabled(bool(self.defaults.get("differentiable", False))):
            return func(self, *args, **kwargs)

    return step


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether to fuse a step, and whether to give lists to it, where nobody said: as torch says
    for devices that are not CUDA's."""
    return False, False


def _get_value(x: Tensor | complex) -> complex:
    """A number, of a tensor too."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Tensor) -> Tensor:
    """`x`: nothing is compiled."""
    return x


def _dispatch_sqrt(x: Tensor | float) -> Tensor | float:
    """The square root of a number, or of a tensor."""
    return x.sqrt() if isinstance(x, Tensor) else math.sqrt(x)


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Put views by real and imaginary parts in the place of complex tensors of lists."""
    for i, p in enumerate(params):
        if mindtorch.is_complex(p):
            params[i] = mindtorch.view_as_real(p)
            for tensors in state_and_grads:
                tensors[i] = mindtorch.view_as_real(tensors[i])


def _get_scalar_dtype(is_fused: bool | None = None) -> Dtype:
    """The dtype of step counters: float64 where that is the default, unless a step is fused."""
    double = mindtorch.get_default_dtype() is mindtorch.float64 and not is_fused
    return mindtorch.float64 if double else mindtorch.float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Devices on which a step may be captured: a graph of npu's calls."""
    return ["npu"]


_default_to_foreach = _default_to_fused_or_foreach
