"""Owns how torch's values become mindtorch's: tensors by their bytes, functions by name."""

import builtins
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

import mindtorch

OURS = "torch.testing._internal"
SEEDED = "torch.testing._utils"


class AbsentName(AttributeError):
    """mindtorch lacks a name of torch; the message is the name."""


def attribute(path: str) -> Any:
    """`mindtorch.<path>`; AbsentName where a part of the path is not there."""
    found: Any = mindtorch
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise AbsentName(path) from None
    return found


class Translator:
    """Carries values of one sample to a library and device; the same tensor becomes the same.

    `lib` is torch (fresh copies for the reference) or mindtorch. Tensors keep strides and offset.
    `leaves` are the ones that require a gradient, in the order met.
    """

    def __init__(self, lib: Any, device: str):
        self.lib = lib
        self.device = device
        self.leaves: list[Any] = []
        # By id; the tensor is kept too, so that no later one gets its id.
        self._made: dict[int, tuple[torch.Tensor, Any]] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._once(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self, value))
        if isinstance(value, torch.Size):
            return self.lib.Size(value)
        if isinstance(value, list | tuple):
            return type(value)(map(self, value))
        if isinstance(value, dict):
            return {k: self(v) for k, v in value.items()}
        if isinstance(value, torch.device):
            return self.lib.device(self.device)
        if value == "cpu" and isinstance(value, str):
            return self.device
        if self.lib is torch:
            return value
        if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
            return attribute(str(value).removeprefix("torch."))
        if isinstance(value, torch.Generator):
            return None
        if isinstance(value, torch.nn.Module):
            return self._module(value)
        return code(value) if callable(value) else value

    def _module(self, module: torch.nn.Module) -> Any:
        """A module of the same class and state, its tensors carried."""
        made = object.__new__(attribute(f"nn.{type(module).__name__}"))
        mindtorch.nn.Module.__init__(made)
        for name, value in vars(module).items():
            if name == "_parameters":
                wrap = mindtorch.nn.Parameter
                carried = {k: v if v is None else wrap(self(v.detach())) for k, v in value.items()}
                made._parameters.update(carried)
            elif name in ("_buffers", "_modules"):
                getattr(made, name).update(self(dict(value)))
            elif not name.endswith("_hooks"):
                made.__dict__.setdefault(name, self(value))
        return made.train(module.training)

    def _once(self, t: torch.Tensor) -> Any:
        if id(t) not in self._made:
            made = self._copy(t)
            if t.requires_grad:
                made = made.requires_grad_()
                self.leaves.append(made)
            self._made[id(t)] = t, made
        return self._made[id(t)][1]

    def _copy(self, t: torch.Tensor) -> Any:
        plain = t.detach()
        if t.layout is not torch.strided:
            return plain.clone() if self.lib is torch else self._sparse(plain)
        plain = plain.resolve_conj().resolve_neg()
        spans = [(n - 1) * s for n, s in zip(plain.shape, plain.stride(), strict=True)]
        room = sum(spans) + 1 if plain.numel() else 0
        flat = plain.as_strided((room,), (1,), plain.storage_offset()).clone()
        flat = flat.to(self.device) if self.lib is torch else tensor(flat, self.device)
        return flat.as_strided(tuple(plain.shape), plain.stride(), 0).detach()

    def _sparse(self, t: torch.Tensor) -> Any:
        if t.layout is torch.sparse_coo:
            parts = self._copy(t._indices()), self._copy(t._values())
            return mindtorch.sparse_coo_tensor(
                *parts, tuple(t.shape), is_coalesced=t.is_coalesced()
            )
        if t.layout not in (torch.sparse_csr, torch.sparse_csc) or t.dim() != 2:
            raise AbsentName(f"sparse tensors ({t.layout}, {t.dim()} dims)")
        rows = t.layout is torch.sparse_csr
        parts = (t.crow_indices(), t.col_indices()) if rows else (t.ccol_indices(), t.row_indices())
        return mindtorch.sparse_compressed_tensor(
            *map(self._copy, parts), self._copy(t.values()), tuple(t.shape),
            layout=attribute(str(t.layout).removeprefix("torch.")),
        )  # fmt: skip


def tensor(flat: torch.Tensor, device: str) -> Any:
    """A 1-d contiguous mindtorch tensor of the values of torch's."""
    dtype = attribute(str(flat.dtype).removeprefix("torch."))
    host = flat.float() if flat.dtype is torch.bfloat16 else flat
    return mindtorch.from_numpy(host.numpy()).to(dtype).to(device)


def _spaces() -> Iterator[tuple[str, Any]]:
    names = ("", "nn.functional", "linalg", "special", "fft", "masked", "signal.windows",
             "Tensor", "sparse", "nn.init", "nn", "functional")  # fmt: skip
    for name in names:
        found: Any = torch
        for part in name.split(".") if name else ():
            found = getattr(found, part)
        yield name, found


def _paths() -> dict[int, str]:
    paths: dict[int, str] = {}
    for name, space in _spaces():
        for key in dir(space):
            try:
                found = getattr(space, key)
            except (AttributeError, RuntimeError):
                continue
            if callable(found):
                paths.setdefault(id(found), f"{name}.{key}" if name else key)
    return paths


_PATHS: dict[int, str] = {}
# By id, with the function itself, so that no other gets its id.
_CODE: dict[int, tuple[Any, Any]] = {}


def code(fn: Any) -> Any:
    """mindtorch's function for torch's: by its public name, or rewritten when a test wrote it."""
    if not _PATHS:
        _PATHS.update(_paths())
    if id(fn) in _PATHS:
        return attribute(_PATHS[id(fn)])
    if isinstance(fn, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return attribute(f"ops.{fn!s}")
    if isinstance(fn, torch.nn.Module):
        raise AbsentName(f"a module in a sample: {type(fn).__name__}")
    if isinstance(fn, types.FunctionType) and fn.__module__.startswith(OURS):
        return rewritten(fn)
    if isinstance(fn, types.FunctionType | type) and not fn.__module__.startswith("torch"):
        return fn
    raise AbsentName(
        f"{getattr(fn, '__module__', '')}.{getattr(fn, '__name__', type(fn).__name__)}"
    )


class _Globals(dict):
    """Globals of a test's function, with mindtorch for torch and its functions rewritten."""

    def __init__(self, fn: Callable[..., Any]):
        super().__init__(fn.__globals__)
        self["torch"] = mindtorch
        names = _names(fn.__code__)
        for name in names:
            found = fn.__globals__.get(name)
            if name == "F":
                self[name] = mindtorch.nn.functional
            elif isinstance(found, types.FunctionType) and found.__module__ == SEEDED:
                self[name] = attribute(f"testing._utils.{name}")
            elif isinstance(found, types.FunctionType) and found.__module__.startswith(OURS):
                self[name] = rewritten(found)
        self["__builtins__"] = builtins


def _names(compiled: types.CodeType) -> set[str]:
    names = set(compiled.co_names)
    for const in compiled.co_consts:
        if isinstance(const, types.CodeType):
            names |= _names(const)
    return names


def rewritten(fn: types.FunctionType) -> Any:
    """The function with mindtorch wherever it says torch."""
    if id(fn) in _CODE:
        return _CODE[id(fn)][1]
    cells = tuple(types.CellType(_cell(c.cell_contents)) for c in fn.__closure__ or ())
    globals_: dict[str, Any] = {}
    made = types.FunctionType(fn.__code__, globals_, fn.__name__, fn.__defaults__, cells)
    made.__kwdefaults__ = fn.__kwdefaults__
    _CODE[id(fn)] = fn, made
    globals_.update(_Globals(fn))
    return made


def _cell(value: Any) -> Any:
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType):
        return code(value)
    return value
