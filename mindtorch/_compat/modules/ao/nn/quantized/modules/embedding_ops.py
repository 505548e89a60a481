"""torch.ao.nn.quantized: tables of integers, each row with a scale and a zero point of its own."""

from __future__ import annotations

from typing import Any

import mindtorch as torch
from mindtorch import Tensor, nn
from mindtorch._compat.method_names import written_out
from mindtorch.nn import functional as F

from .linear import repr_without
from .utils import PackedParams


class EmbeddingPackedParams(PackedParams):
    """The table, as one entry of a layer's state_dict."""

    _version = 1
    _ENTRY = "_packed_weight"

    def __init__(
        self, num_embeddings: int, embedding_dim: int, dtype: torch.dtype = torch.quint8
    ) -> None:
        super().__init__(dtype)
        if dtype is not torch.quint8:
            raise NotImplementedError(
                f"Unsupported dtype on quantized embedding! Supports quint8, got dtype: {dtype}"
            )
        scales = torch.ones(num_embeddings, dtype=torch.float)
        zeros = torch.zeros(num_embeddings, dtype=torch.float)
        self.set_weight(
            torch._empty_per_channel_affine_quantized(
                [num_embeddings, embedding_dim], scales=scales, zero_points=zeros, axis=0,
                dtype=torch.quint8,
            )
        )  # fmt: skip

    def set_weight(self, weight: Any) -> None:
        """Replace the table."""
        self._packed_weight = weight

    def _weight(self) -> Any:
        return self._packed_weight

    def _put(self, entry: Any) -> None:
        self.set_weight(entry)


@written_out("__init__")
class Embedding(nn.Module):
    """int `[*]` → float32 `[*, embedding_dim]`."""

    _version = 1

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False, _weight: Tensor | None = None, dtype: torch.dtype = torch.quint8,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        if _weight is not None:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim"
                )
            self.set_weight(_weight)

    def forward(self, indices: Tensor) -> Tensor:
        return F.embedding(indices, self.weight().dequantize())

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    def __repr__(self) -> str:
        return repr_without(self, EmbeddingPackedParams)

    def extra_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
            f"dtype={self._packed_params.dtype}, qscheme={self.weight().qscheme()}"
        )

    def set_weight(self, w: Any) -> None:
        """Replace the table: quint8 `[num_embeddings, embedding_dim]`."""
        self._packed_params.set_weight(w)

    def weight(self) -> Any:
        """quint8 `[num_embeddings, embedding_dim]`."""
        return self._packed_params._weight()

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Any:
        """With the table of `mod`, by its `qconfig`."""
        from ....quantization.observer import default_float_qparams_observer

        name = cls.__name__
        if hasattr(mod, "weight_fake_quant"):
            observer = mod.weight_fake_quant
        else:
            if type(mod) is not getattr(nn, name):
                raise AssertionError(f"nnq.{name}.from_float only works for {name}")
            if not hasattr(mod, "qconfig"):
                raise AssertionError(f"{name} input float module must have qconfig defined")
            explicit = mod.qconfig is not None and mod.qconfig.weight is not None
            observer = (mod.qconfig.weight if explicit else default_float_qparams_observer)()
        if observer.dtype is not torch.quint8:
            raise AssertionError(
                "The only supported dtype for nnq."
                f"{name} is torch.quint8 and torch.quint4x2, got {observer.dtype}"
            )
        observer(mod.weight)
        scales, zeros = observer.calculate_qparams()
        table = torch.quantize_per_channel(
            mod.weight.detach().float(), scales.float(), zeros.float(), 0, torch.quint8
        )
        new = cls._like(mod, observer.dtype)
        new.set_weight(table)
        return new

    @classmethod
    def _like(cls, mod: nn.Module, dtype: torch.dtype) -> Any:
        return cls(mod.num_embeddings, mod.embedding_dim, dtype=dtype)

    @classmethod
    def from_reference(cls, ref_embedding: nn.Module) -> Any:
        """From a layer that computes in floating point."""
        return cls(
            ref_embedding.num_embeddings, ref_embedding.embedding_dim, ref_embedding.padding_idx,
            ref_embedding.max_norm, ref_embedding.norm_type, ref_embedding.scale_grad_by_freq,
            ref_embedding.sparse, ref_embedding.get_quantized_weight(),
            ref_embedding.weight_dtype,
        )  # fmt: skip


@written_out("__init__")
class EmbeddingBag(Embedding):
    """int `[B, N]`, or `[N]` with `offsets` → float32 `[B, embedding_dim]`: sums of rows."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "sum",
        sparse: bool = False, _weight: Tensor | None = None, include_last_offset: bool = False,
        dtype: torch.dtype = torch.quint8,
    ) -> None:  # fmt: skip
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode, self.pruned_weights = mode, False
        self.include_last_offset = include_last_offset

    def forward(
        self, indices: Tensor, offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
        compressed_indices_mapping: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        return F.embedding_bag(
            indices, self.weight().dequantize(), offsets, mode="sum",
            per_sample_weights=per_sample_weights, include_last_offset=self.include_last_offset,
        )  # fmt: skip

    @classmethod
    def _like(cls, mod: nn.Module, dtype: torch.dtype) -> Any:
        return cls(
            mod.num_embeddings, mod.embedding_dim, mod.max_norm, mod.norm_type,
            mod.scale_grad_by_freq, mod.mode, mod.sparse,
            include_last_offset=mod.include_last_offset, dtype=dtype,
        )  # fmt: skip

    @classmethod
    def from_reference(cls, ref_embedding: nn.Module) -> Any:
        """From a layer that computes in floating point."""
        new = cls._like(ref_embedding, ref_embedding.weight_dtype)
        new.set_weight(ref_embedding.get_quantized_weight())
        return new
