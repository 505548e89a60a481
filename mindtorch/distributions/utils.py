"""torch.distributions.utils: helpers of distributions under torch's name."""

from .distribution import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
    standard_normal as _standard_normal,
    sum_rightmost as _sum_rightmost,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)

euler_constant = 0.57721566490153286060  # Euler Mascheroni Constant

__all__ = ["_standard_normal", "_sum_rightmost", "broadcast_all", "clamp_probs", "lazy_property",
           "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
           "vec_to_tril_matrix"]  # fmt: skip
