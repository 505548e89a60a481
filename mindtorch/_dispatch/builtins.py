"""Owns the objects of C that stand for functions of Python where torch's are of C.

A function of Python binds where a class holds it, one of C does not: `act = torch.tanh` in a class
of modules is no method of it. Rows call the functions themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import isfunction, isroutine
from types import ModuleType
from typing import Any

from .._compat.argument_errors import SIGNS, checked, explained
from .._tensor.slots import TensorSlots, builtin, descriptor, explain_by
from .._tensor.subclass import ASKING_OPERATORS, OURS

# Functions of torch that are written in Python there: they hand on what has a default by name.
FUNCTIONS = frozenset((
    "_assert", "are_deterministic_algorithms_enabled", "atleast_1d", "atleast_2d", "atleast_3d",
    "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "cdist",
    "chain_matmul", "eig", "einsum", "from_dlpack", "get_deterministic_debug_mode",
    "get_float32_matmul_precision", "is_deterministic_algorithms_warn_only_enabled", "is_storage",
    "is_tensor", "lstsq", "lu", "matrix_rank", "meshgrid", "norm", "pca_lowrank",
    "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision",
    "solve", "split", "stft", "svd_lowrank", "symeig", "tensordot", "typename", "unique",
    "unique_consecutive", "unravel_index", "use_deterministic_algorithms",
))  # fmt: skip
# Functions of torch.nn.functional that are in C.
LAYERS = frozenset((
    "adaptive_avg_pool1d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "bilinear", "celu_",
    "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "elu_", "gelu", "hardshrink",
    "hardtanh_", "leaky_relu_", "linear", "logsigmoid", "one_hot", "pairwise_distance", "pdist",
    "pixel_shuffle", "pixel_unshuffle", "prelu", "relu_", "rrelu_", "scaled_dot_product_attention",
    "selu_", "softplus", "softshrink", "threshold_",
))  # fmt: skip
# Functions of torch._C._nn among them.
NN = frozenset((
    "avg_pool2d", "avg_pool3d", "elu_", "gelu", "hardtanh_", "leaky_relu_", "linear", "logsigmoid",
    "one_hot", "scaled_dot_product_attention", "softplus", "softshrink",
))  # fmt: skip
# Functions of torch.nn.functional that call the method, so that no class sees them.
METHODS = frozenset(("sigmoid", "tanh"))
# Methods of Tensor that are written in Python, and those that types have slots for.
_METHODS = frozenset((
    "__array__", "__array_wrap__", "__contains__", "__copy__", "__deepcopy__", "__delitem__",
    "__dir__", "__dlpack__", "__dlpack_device__", "__floordiv__", "__format__", "__getitem__",
    "__init__", "__ipow__", "__iter__", "__len__", "__new__", "__pow__", "__rdiv__",
    "__reduce_ex__", "__repr__", "__reversed__", "__rfloordiv__", "__rlshift__", "__rmatmul__",
    "__rmod__", "__rpow__", "__rrshift__", "__rsub__", "__rtruediv__", "__setitem__",
    "_typed_storage", "backward", "dim_order", "eig", "is_shared", "istft", "lstsq", "lu",
    "module_load", "norm", "register_hook", "register_post_accumulate_grad_hook", "reinforce",
    "resize", "resize_as", "share_memory_", "solve", "split", "stft", "storage",
    "storage_type", "symeig",
    "to_sparse_coo", "unflatten", "unique", "unique_consecutive",
))  # fmt: skip


# What torch's functions are static methods of.
_VariableFunctionsClass = type("_VariableFunctionsClass", (), {"__module__": "torch._C"})
_SPACES = ("fft", "linalg", "nn", "special")
MODULES = {space: ModuleType(f"torch._C._{space}") for space in _SPACES}
_objects: dict[Any, Any] = {}
_functions: dict[Any, Callable[..., Any]] = {}


def public(function: Any, name: str, space: str = "", second: bool = False) -> Any:
    """What users have for a function by its name in torch, or in the module `torch._C._space`.

    `second`: users have the function itself too, as a layer of torch.nn.functional.
    """
    if function in _objects:
        return _objects[function]
    if not isfunction(function) or (not space and name in FUNCTIONS):
        return function
    owner: Any = MODULES[space] if space else _VariableFunctionsClass
    home = owner.__name__ if space else "torch"
    if second and name in vars(owner) and _functions.get(vars(owner)[name]) is function:
        return vars(owner)[name]
    value = builtin(function, name, _doc(function, name), owner, home)
    setattr(owner, name, value)
    _functions[value] = function
    if not second:
        _objects[function] = value
    return value


def method(function: Any, name: str) -> Any:
    """What Tensor has for a function under a name."""
    if not isfunction(function):
        return function
    if name in _METHODS:
        if name in ASKING_OPERATORS:  # classes are asked for it by the name that torch's has
            function.__name__ = "__rdiv__" if name == "__rtruediv__" else name
            function.__qualname__ = f"Tensor.{function.__name__}"
        elif name not in FUNCTIONS:
            function.__qualname__ = f"Tensor.{name}"
        return function
    value = descriptor(function, name, _doc(function, name))
    setattr(TensorSlots, name, value)  # where pickles of it look
    _functions[value] = function
    return value


def _doc(function: Any, name: str) -> str | None:
    signature = function.__dict__.get("__signature__")
    return function.__doc__ if signature is None else f"{name}{signature}\n\n{function.__doc__}"


def object_of(function: Any) -> Any:
    """What users have for a function; the function where that is it."""
    return _objects.get(function, function)


def function_of(value: Any) -> Any:
    """The function behind what users have."""
    return _functions.get(value, value) if isroutine(value) else value


def _explain(
    owner: object,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    error: BaseException | None,
) -> BaseException | bool | None:
    """What torch's parser says of a call that failed; None where it takes the call.

    Of a call before it is made (no error): what it says if it refuses the call, True if it takes
    all of these classes, False if it takes this one, None if it knows nothing of the name.
    Calls of mindtorch itself may give what torch's parser refuses: None among indices.
    """
    if error is not None and not isinstance(error, SIGNS):
        return None
    internal = sys._getframe(1).f_code.co_filename.startswith(OURS)
    if error is not None and internal:
        return None
    space = getattr(owner, "__name__", "").rpartition(".")[2]
    prefix = f"{space[1:]}_" if space in _PREFIXED else ""
    full = f".{name}" if owner is TensorSlots else prefix + name.removeprefix(prefix)
    if error is not None:
        return explained(full, args, kwargs)
    answer = checked(full, args, kwargs)
    return False if internal and isinstance(answer, TypeError) else answer


_PREFIXED = ("_fft", "_linalg", "_special")
explain_by(_explain)
