"""Owns the parameters of one wrapped module as a flat one, of which each process has a part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import mindtorch
from mindtorch import nn

from ..._tensor.dtype import dtype as Dtype
from ..._tensor.tensor import Tensor
from .. import _calls, get_rank, get_world_size
from .._calls import Group

NAME = "_flat_param"


@dataclass
class FlatPiece:
    """A parameter of a unit: its name there, where modules have it, its shape and place."""

    name: str
    owners: list[tuple[nn.Module, str]]
    shape: tuple[int, ...]
    start: int
    end: int


_ALIGNMENT = 16  # bytes, where each parameter begins that optimizers have by itself


def _pieces(
    module: nn.Module, left_out: set[nn.Parameter], original: bool
) -> tuple[list[FlatPiece], list[Tensor]]:
    """The parameters of a module that are not in units within, nor flat, and their values."""
    pieces: dict[int, FlatPiece] = {}
    values: list[Tensor] = []
    step, free = 1, 0

    def visit(inner: nn.Module, prefix: str) -> None:
        nonlocal step, free
        for key, p in inner._parameters.items():
            if p is None or p in left_out:
                continue
            if id(p) in pieces:
                pieces[id(p)].owners.append((inner, key))
                continue
            step = max(_ALIGNMENT // p.itemsize, 1) if original else 1
            start = -(-free // step) * step
            free = start + p.numel()
            pieces[id(p)] = FlatPiece(f"{prefix}{key}", [(inner, key)], tuple(p.shape), start, free)
            values.append(p)
        for key, child in inner.named_children():
            if not hasattr(child, "_fsdp_wrapped_module"):
                visit(child, f"{prefix}{key}.")

    visit(module, "")
    return list(pieces.values()), values


def _refuse_mixed(values: Sequence[Tensor], original: bool) -> None:
    first = values[0]
    for value in values:
        if value.dtype != first.dtype:
            raise ValueError(
                f"Must flatten tensors with uniform dtype but got {first.dtype} and {value.dtype}"
            )
        if value.requires_grad != first.requires_grad and not original:
            raise ValueError(
                "Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`"
            )


class FlatUnit:
    """A module's parameters; `flat` is this process's part, all of it where nothing is sharded."""

    flat: nn.Parameter

    def __init__(
        self, module: nn.Module, group: Group, left_out: set[nn.Parameter], shards: bool,
        original: bool, dtypes: tuple[Dtype | None, Dtype | None],
    ) -> None:  # fmt: skip
        self.module, self.group, self.original = module, group, original
        self.count = get_world_size(group) if shards else 1
        self.place = get_rank(group) if shards else 0
        self.param_dtype, self.reduce_dtype = dtypes
        self.sync, self.unreduced = True, None
        # Whole tensors of which gradients are to come: the graph holds them weakly.
        self.awaited: dict[int, Tensor] = {}
        self.pieces, values = _pieces(module, left_out, original)
        if not values:
            return
        self.numel = self.pieces[-1].end
        _refuse_mixed(values, original)
        requires_grad = any(v.requires_grad for v in values)
        whole = self.flattened(values)
        self.length = -(-self.numel // self.count)
        self.flat = nn.Parameter(self.own(whole), requires_grad)
        for piece, value in zip(self.pieces, values, strict=True):
            for owner, key in piece.owners:
                del owner._parameters[key]
                if original:
                    owner._parameters[key] = self._slice(piece, value.requires_grad)
        if not original:
            module.register_parameter(NAME, self.flat)
        self.reshard()

    def flattened(self, values: Sequence[Tensor]) -> Tensor:
        """Values of the pieces as a flat tensor [numel]."""
        flat = values[0].detach().new_zeros(self.numel)
        for piece, value in zip(self.pieces, values, strict=True):
            flat[piece.start : piece.end] = value.detach().reshape(-1)
        return flat

    def own(self, whole: Tensor) -> Tensor:
        """This process's part of a flat tensor, which is filled up to parts of one size."""
        if self.count == 1:
            return whole.clone()
        padded = mindtorch.zeros(self.length * self.count, dtype=whole.dtype, device=whole.device)
        padded[: whole.numel()] = whole
        return padded[self.place * self.length : (self.place + 1) * self.length].clone()

    def joined(self, parts: Sequence[Tensor]) -> Tensor:
        """This process's part [length] of what its parameters' parts are."""
        if not self.original:
            return parts[0]
        joined = parts[0].new_zeros(self.length)
        for piece, part in zip(self.pieces, parts, strict=True):
            start, end = self.range_of(piece)
            joined[start:end] = part.reshape(-1)
        return joined

    def range_of(self, piece: FlatPiece) -> tuple[int, int]:
        """The elements of a parameter in this process's part."""
        first = self.place * self.length
        start = min(max(piece.start - first, 0), self.length)
        return start, max(min(piece.end - first, self.length), start)

    def _slice(self, piece: FlatPiece, requires_grad: bool) -> nn.Parameter:
        start, end = self.range_of(piece)
        part = self.flat.detach()[start:end]
        whole = end - start == piece.end - piece.start and self.count == 1
        return nn.Parameter(part.view(piece.shape) if whole else part, requires_grad)

    def gathered(self, part: Tensor) -> Tensor:
        """The flat tensor [numel] of every process's part."""
        if self.count > 1:
            part = part.contiguous()
            parts = [mindtorch.empty_like(part) for _ in range(self.count)]
            _calls.all_gather(parts, part, self.group)
            part = mindtorch.cat(parts)
        return part[: self.numel]

    def unshard(self) -> None:
        """Modules have views of a flat tensor whose gradient is reduced when it is there."""
        full = self.gathered(self.flat.detach().to(self.param_dtype or self.flat.dtype)).detach()
        full = full.clone() if self.count == 1 else full
        full.requires_grad_(self.flat.requires_grad)
        if full.requires_grad and mindtorch.is_grad_enabled():
            self.awaited[id(full)] = full
            full.register_post_accumulate_grad_hook(self._reduce)
        for piece in self.pieces:
            view = full[piece.start : piece.end].view(piece.shape)
            for owner, key in piece.owners:
                if self.original:
                    vars(owner).setdefault("_fsdp_parts", {})[key] = owner._parameters[key]
                    owner._parameters[key] = view
                else:
                    vars(owner)[key] = view

    def reshard(self) -> None:
        """Modules have their parts again."""
        for piece in self.pieces:
            start, end = self.range_of(piece)
            for owner, key in piece.owners:
                if not self.original:
                    vars(owner)[key] = self.flat.detach()[start:end]
                elif key in vars(owner).get("_fsdp_parts", {}):
                    owner._parameters[key] = vars(owner)["_fsdp_parts"].pop(key)

    def _reduce(self, full: Tensor) -> None:
        """Give the part the mean of all processes' gradients."""
        with mindtorch.no_grad():
            grad, full.grad = full.grad, None
            assert grad is not None
            self.awaited.pop(id(full), None)
            if self.unreduced is not None:
                grad, self.unreduced = grad + self.unreduced, None
            if not self.sync:
                self.unreduced = grad
                return
            grad = grad.to(self.reduce_dtype or grad.dtype) / get_world_size(self.group)
            if self.count > 1:
                padded = grad.new_zeros(self.length * self.count)
                padded[: self.numel] = grad
                part = mindtorch.empty_like(padded[: self.length])
                _calls.reduce_scatter(part, list(padded.chunk(self.count)), "SUM", self.group)
            else:
                part = grad.contiguous().clone()
                _calls.all_reduce(part, "SUM", self.group)
            part = part.to(self.flat.dtype)
            self.flat.grad = part if self.flat.grad is None else self.flat.grad + part
            self._spread_gradients()

    def _spread_gradients(self) -> None:
        if not self.original:
            return
        grad = self.flat.grad
        assert grad is not None
        for piece, p in self.slices():
            if p.requires_grad:
                start, end = self.range_of(piece)
                part = grad[start:end].view(p.shape)
                p.grad = part.clone() if p.grad is None else p.grad + part
        self.flat.grad = None

    def slices(self) -> Iterator[tuple[FlatPiece, nn.Parameter]]:
        """Parameters in parts, where modules keep those."""
        for piece in self.pieces:
            owner, key = piece.owners[0]
            part = vars(owner).get("_fsdp_parts", {}).get(key, owner._parameters.get(key))
            assert part is not None
            yield piece, part

    def learned(self) -> list[nn.Parameter]:
        """What optimizers have of this unit."""
        return [p for _, p in self.slices()] if self.original else [self.flat]

    def summon(self) -> None:
        """Modules have whole parameters."""
        full = self.gathered(self.flat.detach()).detach().clone()
        for piece in self.pieces:
            view = full[piece.start : piece.end].view(piece.shape)
            for owner, key in piece.owners:
                vars(owner).pop(key, None)
                if self.original:
                    vars(owner).setdefault("_fsdp_parts", {})[key] = owner._parameters[key]
                owner._parameters[key] = nn.Parameter(view, self.flat.requires_grad)
        if not self.original:
            self.module._parameters.pop(NAME, None)

    def dismiss(self, writeback: bool) -> None:
        """End `summon`; keep what was written where that is asked for."""
        values = []
        for piece in self.pieces:
            owner, key = piece.owners[0]
            whole = owner._parameters[key]
            assert whole is not None
            values.append(whole)
            for inner, name in piece.owners:
                del inner._parameters[name]
                if self.original:
                    inner._parameters[name] = vars(inner)["_fsdp_parts"].pop(name)
        if not self.original:
            self.module._parameters[NAME] = self.flat
        if writeback:
            with mindtorch.no_grad():
                self.flat.copy_(self.own(self.flattened(values)))
        self.reshard()
