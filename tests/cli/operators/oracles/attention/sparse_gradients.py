"""What torch gives for the rows of attention, sparse_gradients."""

from .flash import through
from .sparse import block_sparse, floyd, selected, sparse_flash

ORACLES = {
    "aclnnNsaSelectedAttentionGrad": through(
        selected, ("query", "key", "value"), "attentionOutGrad", 2
    ),
    "aclnnSparseFlashAttentionGrad": through(
        sparse_flash,
        ("query", "key", "value", "queryRopeOptional", "keyRopeOptional"),
        "dOut",
        sparseBlockSizeOptional="sparseBlockSize",
        layoutQueryOptional="layoutOptional",
    ),
    "aclnnBlockSparseAttentionGrad": through(block_sparse, ("query", "key", "value"), "dout"),
    "aclnnFusedFloydAttentionGrad": through(
        floyd,
        ("query", "key1", "value1", "key2", "value2"),
        "dy",
        2,
        scaleValueOptional="scaleValue",
    ),
}
