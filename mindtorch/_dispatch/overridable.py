"""Owns the lists of what classes may take over by `__torch_function__`, and what they may not."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from itertools import chain
from types import FunctionType
from typing import Any

from .._tensor.tensor import Tensor
from .overloads import rows_of

# Functions that take no tensors, or that look at none for a class.
_IGNORED = """
arange are_deterministic_algorithms_enabled as_strided as_tensor asarray bartlett_window
blackman_window broadcast_shapes can_cast clear_autocast_cache compile cond empty empty_permuted
empty_strided eye fill from_file from_numpy frombuffer full get_autocast_dtype get_default_device
get_default_dtype get_deterministic_debug_mode get_device_module get_float32_matmul_precision
get_num_interop_threads get_num_threads get_rng_state hamming_window hann_window initial_seed
is_anomaly_enabled is_autocast_cache_enabled is_autocast_enabled is_grad_enabled
is_inference_mode_enabled is_storage is_tensor is_warn_always_enabled kaiser_window linspace load
logspace manual_seed normal ones promote_types rand rand_like randint randint_like randn randn_like
randperm range result_type save scalar_tensor seed set_autocast_cache_enabled set_autocast_dtype
set_autocast_enabled set_default_device set_default_tensor_type set_deterministic_debug_mode
set_float32_matmul_precision set_flush_denormal set_grad_enabled set_num_interop_threads
set_num_threads set_printoptions set_rng_state set_warn_always sparse_bsc_tensor sparse_bsr_tensor
sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor tensor tril_indices
triu_indices typename use_deterministic_algorithms vander vmap zeros
"""
_IGNORED_LAYERS = "hardsigmoid hardswish sigmoid tanh upsample upsample_bilinear upsample_nearest"
_IGNORED_METHODS = """
__delitem__ __dir__ __hash__ __init__ __init_subclass__ __iter__ __new__ __subclasshook__
as_subclass new new_empty new_empty_strided new_full new_ones new_tensor new_zeros
reinforce stride to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr unflatten
"""
_PLACES = ("", ".nn.functional", ".linalg", ".fft", ".special")


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Functions and methods that no class takes over."""
    named = (("", _IGNORED), (".nn.functional", _IGNORED_LAYERS))
    functions = {
        getattr(import_module(f"mindtorch{place}"), name)
        for place, names in named
        for name in names.split()
    }
    return functions | {getattr(Tensor, n) for n in _IGNORED_METHODS.split() if hasattr(Tensor, n)}


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """What classes may take over, by the module or class it is in; of attributes, the reading."""
    ignored, table = get_ignored_functions(), dict[Any, list[Callable[..., Any]]]()
    for place in _PLACES:
        module = import_module(f"mindtorch{place}")
        names = (n for n in dir(module) if not n.startswith("_") and not n.endswith("_"))
        public = [f for f in (getattr(module, n) for n in names) if _is_function(f)]
        table[module] = [f for f in public if f not in ignored]
    table[Tensor] = []
    for name in dir(Tensor):
        member = getattr(Tensor, name)
        if name.startswith("_") and not name.startswith("__"):
            continue
        if isinstance(member, property):
            table[member] = [member.__get__]
        elif _is_function(member) and member is not getattr(object, name, None):
            table[Tensor] += [member] * (member not in ignored)
    return table


def _is_function(value: object) -> bool:
    return callable(value) and not isinstance(value, type)


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., int]]:
    """For each function that classes may take over one of its signature that gives -1."""
    functions = chain.from_iterable(get_overridable_functions().values())
    return {function: _standing_in(function) for function in functions}


def _standing_in(function: Callable[..., Any]) -> Callable[..., int]:
    def stand_in(*args: object, **kwargs: object) -> int:
        return -1

    stand_in.__dict__["__signature__"] = _signature(function)
    return stand_in


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """The names and defaults that a function takes."""
    name = function.__name__
    kind = inspect.Parameter
    if name == "__get__":
        return inspect.Signature([kind("self", kind.POSITIONAL_OR_KEYWORD)])
    if isinstance(function, FunctionType):
        signature = inspect.signature(function)
        plain = [p.replace(annotation=kind.empty) for p in signature.parameters.values()]
        return inspect.Signature(plain)
    rows = rows_of(name.strip("_"), "aten")
    if not rows:
        return inspect.signature(lambda *args, **kwargs: -1)
    arguments = rows[0].schema.args
    has_default = False
    parameters: list[inspect.Parameter] = []
    for argument in sorted(arguments, key=lambda a: a.keyword_only):
        has_default = argument.has_default or (has_default and not argument.keyword_only)
        parameters.append(
            kind(
                "input" if argument.name == "self" else argument.name,
                kind.KEYWORD_ONLY if argument.keyword_only else kind.POSITIONAL_OR_KEYWORD,
                default=argument.default if has_default else kind.empty,
            )
        )
    return inspect.Signature(parameters)
