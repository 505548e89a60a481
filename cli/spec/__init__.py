"""Owns the public way to say what an operator computes and what it may be given.

    from mindtorch_npu.spec import Rule, number, out, spec, tensor

    @spec("aclnnRmsNorm", Rule("composite", "Zhang, Sennrich: RMSNorm, 2019, equation 4"),
          x=tensor("*B N"), gamma=tensor("N", "x"), epsilon=number(1e-6, 0.25),
          yOut=out("x"), rstdOut=out("f32"))
    def rms_norm(x, gamma, epsilon): ...

Imports numpy and nothing else of ours: no device, no tensor library.
"""

from .errors import DeclarationError
from .row import ROWS, Row, Rule, also, spec
from .sizes import (
    batch,
    channels,
    column,
    experts,
    group,
    head_dim,
    heads,
    leading,
    members,
    page,
    pages,
    row,
    rows,
    seq,
    shape,
    space,
    tokens,
    topk,
    window,
)  # fmt: skip
from .words import (
    array,
    axes,
    axis,
    beside,
    bits,
    both,
    by,
    causal,
    choice,
    content,
    dims,
    dtypes,
    each,
    equals,
    flag,
    forms,
    ignored,
    index,
    inout,
    integer,
    ints,
    mask,
    null,
    number,
    numbers,
    only,
    optional,
    out,
    overload,
    parts,
    permutation,
    pin,
    require,
    routing,
    scalar,
    scalar_tensor,
    several,
    sizes,
    slots,
    tensor,
    tensors,
)  # fmt: skip

__all__ = [
    "ROWS", "DeclarationError", "Row", "Rule", "also", "array", "axes", "axis", "batch", "beside",
    "bits", "both", "by", "causal", "channels", "choice", "column", "content", "dims", "dtypes",
    "each", "equals", "experts", "flag", "forms", "group", "head_dim", "heads", "ignored", "index",
    "inout", "integer", "ints", "leading", "mask", "members", "null", "number", "numbers", "only",
    "optional", "out", "overload", "page", "pages", "parts", "permutation", "pin", "require",
    "routing", "row", "rows", "scalar", "scalar_tensor", "seq", "several", "shape", "sizes",
    "slots", "space", "spec", "tensor", "tensors", "tokens", "topk", "window",
]  # fmt: skip
