"""Operators whose formula nobody publishes: what is known of them, and where from."""

from __future__ import annotations

from typing import Final

from ..spec import unspecified

_HEADER: Final = "the header of CANN 8.1.RC1 or of August 2026: names and types alone"

unspecified("aclnnSleep", "keeps the device busy for a number of cycles; it has no result",
            "parameter names of the header")  # fmt: skip
unspecified("aclnnMrgbaCustom aclnnBlendImagesCustom aclnnBackgroundReplace",
            "image composition by an alpha plane or mask; how bytes are rounded is not published",
            _HEADER)  # fmt: skip
unspecified("aclnnSimThreadExponential",
            "fills with exponential draws of a generator whose state per thread is not published",
            _HEADER)  # fmt: skip
unspecified("aclnnTransMatmulWeight",
            "rewrites a weight in a private order that only its matmul reads", _HEADER)  # fmt: skip
unspecified(
    "aclnnTransConvolutionWeight",
    "rewrites a weight in a private order that only its convolution reads",
    _HEADER,
)
unspecified("aclnnSilentCheck aclnnSilentCheckV2",
            "compares a value with limits and with its past; the codes of its result, and what a "
            "jump is measured in, are not published", "operator documents of both")  # fmt: skip
unspecified("aclnnMoeUpdateExpert", "maps experts to replicas by a table; how ties of load are "
            "broken is not published", "op-plugin document npu_moe_update_expert")  # fmt: skip
unspecified("aclnnAdvanceStep",
            "moves vLLM's block tables on; op-plugin's document and the golden of its test read "
            "the table without its rows' offset, vLLM with it", "op-plugin document "
            "npu_advance_step_flashattn and its test; vLLM, advance_step")  # fmt: skip
