"""Owns the Transformer layers: encoder, decoder, their stacks and the whole model."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import mindtorch

from ..._compat.method_names import written_out
from ..._tensor.device import DeviceLike, device as Device
from ..._tensor.dtype import dtype as Dtype
from ..._tensor.tensor import Tensor
from .. import functional as F, init
from ._attention import MultiheadAttention
from .activation import GELU, ReLU
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Any], Any]


def _activation(choice: Activation) -> Callable[[Any], Any]:
    if not isinstance(choice, str):
        return choice
    if choice not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {choice}")
    activation: Callable[[Any], Any] = F.relu if choice == "relu" else F.gelu
    return activation


_get_activation_fn = _activation


def _copies(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


@written_out("__setstate__")
class _Layer(Module):
    """Feed-forward part and norms that encoder and decoder layers share."""

    def _make_feed_forward(
        self, d_model: int, width: int, dropout: float, bias: bool, more: dict[str, Any]
    ) -> None:
        self.linear1: Linear = Linear(d_model, width, bias=bias, **more)
        self.dropout: Dropout = Dropout(dropout)
        self.linear2: Linear = Linear(width, d_model, bias=bias, **more)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("activation", F.relu)


def _float_masks(
    padding: Tensor | None, mask: Tensor | None, name: str, dtype: Dtype
) -> tuple[Tensor | None, Tensor | None]:
    """Masks as they are added to scores; a warning where one is bool and the other is not."""
    kind = F._none_or_dtype(mask)
    padding = F._canonical_mask(padding, "src_key_padding_mask", kind, name, dtype)
    return padding, F._canonical_mask(mask, name, None, "", dtype, False)


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward part, each with a residual and a norm."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        more: dict[str, Any] = {"device": device, "dtype": dtype}
        self.self_attn: MultiheadAttention = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **more
        )
        self._make_feed_forward(d_model, dim_feedforward, dropout, bias, more)
        self.norm_first = norm_first
        self.norm1: LayerNorm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **more)
        self.norm2: LayerNorm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **more)
        self.dropout1: Dropout = Dropout(dropout)
        self.dropout2: Dropout = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        src_key_padding_mask, src_mask = _float_masks(
            src_key_padding_mask, src_mask, "src_mask", src.dtype
        )

        def attend(x: Tensor) -> Tensor:
            out, _ = self.self_attn(
                x,
                x,
                x,
                attn_mask=src_mask,
                key_padding_mask=src_key_padding_mask,
                need_weights=False,
                is_causal=is_causal,
            )
            return self.dropout1(out)

        x: Any = src
        if self.norm_first:
            x = x + attend(self.norm1(x))
            return x + self.dropout2(self._feed_forward(self.norm2(x)))
        x = self.norm1(x + attend(x))
        return self.norm2(x + self.dropout2(self._feed_forward(x)))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's memory, and a feed-forward part."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        more: dict[str, Any] = {"device": device, "dtype": dtype}
        attention = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **more}
        self.self_attn: MultiheadAttention = MultiheadAttention(d_model, nhead, **attention)
        self.multihead_attn: MultiheadAttention = MultiheadAttention(d_model, nhead, **attention)
        self._make_feed_forward(d_model, dim_feedforward, dropout, bias, more)
        self.norm_first = norm_first
        for name in ("norm1", "norm2", "norm3"):
            setattr(self, name, LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **more))
        for name in ("dropout1", "dropout2", "dropout3"):
            setattr(self, name, Dropout(dropout))
        self.activation = _activation(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend_self(x: Tensor) -> Tensor:
            settings = (tgt_key_padding_mask, False, tgt_mask)
            return self.dropout1(self.self_attn(x, x, x, *settings, is_causal=tgt_is_causal)[0])

        def attend_memory(x: Tensor) -> Tensor:
            settings = (memory_key_padding_mask, False, memory_mask)
            out = self.multihead_attn(x, memory, memory, *settings, is_causal=memory_is_causal)
            return self.dropout2(out[0])

        def feed(x: Tensor) -> Tensor:
            return self.dropout3(self._feed_forward(x))

        x: Any = tgt
        parts = ((self.norm1, attend_self), (self.norm2, attend_memory), (self.norm3, feed))
        for norm, part in parts:
            x = x + part(norm(x)) if self.norm_first else norm(x + part(x))
        return x


def _why_no_nested(layer: Any) -> str:
    """What keeps torch's encoder from packing its batch; mindtorch's never packs."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = {
        "encoder_layer.norm_first was True": layer.norm_first,
        "encoder_layer.self_attn.batch_first was not True(use batch_first for better inference"
        " performance)": not attention.batch_first,
        "encoder_layer.self_attn was passed bias=False": attention.in_proj_bias is None,
        "encoder_layer.activation_relu_or_gelu was not True": layer.activation
        not in (F.relu, F.gelu)
        and not isinstance(layer.activation, ReLU | GELU),
        "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps": layer.norm1.eps
        != layer.norm2.eps,
        "encoder_layer.self_attn.num_heads is odd": attention.num_heads % 2 == 1,
    }
    return next((text for text, holds in reasons.items() if holds), "")


class TransformerEncoder(Module):
    """A stack of copies of one encoder layer."""

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers: ModuleList = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        why_not = _why_no_nested(encoder_layer) if enable_nested_tensor else ""
        if why_not:
            warnings.warn(
                "enable_nested_tensor is True, but self.use_nested_tensor is False because"
                f" {why_not}",
                stacklevel=2,
            )
        self.use_nested_tensor = enable_nested_tensor and not why_not
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        src_key_padding_mask, mask = _float_masks(src_key_padding_mask, mask, "mask", src.dtype)
        causal = _is_causal(mask, is_causal)
        output: Any = src
        padding = self._padding(src, src_key_padding_mask, mask)
        for layer in self.layers:
            output = layer(
                output,
                src_mask=mask,
                is_causal=causal,
                src_key_padding_mask=src_key_padding_mask,
            )
        if padding is not None:
            output = output.masked_fill(padding[..., None], 0.0)
        return output if self.norm is None else self.norm(output)

    def _padding(self, src: Tensor, padding: Tensor | None, mask: Tensor | None) -> Tensor | None:
        """bool `[B, S]`: the elements that layers without gradients leave out, which are zero then:
        padding behind each sample. RuntimeError in torch's words for masks of other sizes."""
        layer: Any = self.layers[0]
        if not self.use_nested_tensor or layer.training or src.dim() != 3 or padding is None:
            return None
        if self.mask_check and padding.dim() != 2:
            raise RuntimeError("Padding mask should be 2D")
        if self.mask_check and padding.shape != src.shape[:2]:
            raise RuntimeError("Mask size should match input size")
        out = padding != 0
        if mask is not None or (self.mask_check and bool((out[:, 1:] < out[:, :-1]).any())):
            return None
        learns = any(t.requires_grad for t in (src, *layer.parameters()))
        return None if mindtorch.is_grad_enabled() and learns else out


def _is_causal(mask: Tensor | None, flag: bool | None) -> bool:
    """The mask is always applied, so the hint needs no look at the mask's values."""
    return mask is not None and bool(flag)


class TransformerDecoder(Module):
    """A stack of copies of one decoder layer."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers: ModuleList = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        causal = _is_causal(tgt_mask, tgt_is_causal)
        output: Any = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """Encoder and decoder stacks; src `[S, N, E]`, tgt `[T, N, E]` → `[T, N, E]`."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        rest = (batch_first, norm_first, bias, device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            one: Module = TransformerEncoderLayer(*layer, *rest)
            self.encoder = TransformerEncoder(one, num_encoder_layers, norm())
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            one = TransformerDecoderLayer(*layer, *rest)
            self.decoder = TransformerDecoder(one, num_decoder_layers, norm())
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Device | str | int | None = None, dtype: Dtype | None = None
    ) -> Any:
        """A `[sz, sz]` mask that is -inf above the diagonal, 0 elsewhere."""
        dtype = mindtorch.get_default_dtype() if dtype is None else dtype
        return mindtorch.full((sz, sz), float("-inf"), dtype=dtype, device=device).triu(1)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)


_generate_square_subsequent_mask = Transformer.generate_square_subsequent_mask
