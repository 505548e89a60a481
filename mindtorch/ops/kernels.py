"""Owns which dtypes torch's cpu kernels lack, by row; other devices have kernels of their own.

Source: torch 2.13 on cpu, each row called in each dtype; `tests/mindtorch/test_dtypes_agreement.py`
asks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._tensor import dtype as dt
from .._tensor.dtype import dtype as Dtype
from .._tensor.geometry import Geometry
from .rules import Pointwise, result_type, scalar_name

_GROUPS = {
    "bool": (dt.bool,),
    "whole": tuple(d for d in dt.ALL if d.category == dt.INTEGER),
    "narrow": tuple(d for d in dt.ALL if d.category == dt.INTEGER and d is not dt.int64),
    "short": (dt.uint8, dt.int8, dt.int16),
    "signed": (dt.int8, dt.int16, dt.int32, dt.int64),
    "half": (dt.float16, dt.bfloat16),
    "real": (dt.float32, dt.float64),
    "complex": tuple(d for d in dt.ALL if d.category == dt.COMPLEX),
}

# Groups of dtypes that are lacking: kernel (as torch's error names it), then its rows.
_LACKING = {
    "bool": """
        addcmul_cpu_out addcmul
        addmm_impl_cpu_ addmm mm linear matmul addbmm tensordot
        addmv_impl_cpu addmv mv
        baddbmm baddbmm
        bmm bmm bilinear
        compute_columns3d conv3d
        cross cross linalg_cross
        dot dot inner vdot
        pow pow
        slow_conv2d_cpu conv1d conv2d
        trace trace
    """,
    "bool whole": """
        lerp_kernel_scalar lerp
        logaddexp_cpu logaddexp
        rms_norm rms_norm
        sigmoid_backward_cpu sigmoid_backward
        tanh_backward_cpu tanh_backward
    """,
    "bool narrow": """
        slow_conv_transpose2d_out_cpu conv_transpose1d conv_transpose2d
        slow_conv_transpose3d_out_cpu conv_transpose3d
    """,
    "whole": """
        histogram_cpu histc
        col2im_out_cpu col2im fold
        im2col_out_cpu im2col unfold.nn
    """,
    "complex": """
        aminmax_cpu aminmax
        copysign_cpu copysign
        cummax_cpu cummax
        cummin_cpu cummin
        digamma digamma
        entr_cpu special_entr
        erf_vml_cpu erf special_ndtr
        erfc_vml_cpu erfc
        erfinv_vml_cpu erfinv
        i0_vml_cpu i0 special_i0
        i0e_cpu special_i0e
        i1_cpu special_i1
        i1e_cpu special_i1e
        lgamma_vml_cpu lgamma
        logit_cpu logit
        max_all max
        maximum_cpu clamp_min.Tensor
        min_all min
        minimum_cpu clamp_max.Tensor
        mode_cpu mode
        trigamma polygamma
        unique unique unique_consecutive
        unique_dim _unique_dim
        xlog1py_cpu special_xlog1py
        xlogy_cpu xlogy
    """,
    "bool complex": """
        max_pool2d max_pool2d max_pool2d_with_indices
        max_pool3d max_pool3d max_pool3d_with_indices
        median_cpu median nanmedian
        median_out median.dim nanmedian.dim
        searchsorted_out_cpu bucketize searchsorted
        threshold_cpu threshold_backward
    """,
    "bool narrow complex": """
        avg_pool2d avg_pool1d avg_pool2d
        avg_pool2d_backward avg_pool2d_backward
    """,
    "bool narrow half complex": """
        avg_pool3d_backward_out_frame avg_pool3d_backward
        avg_pool3d_out_frame avg_pool3d
    """,
    "bool whole complex": """
        GroupNormKernelImpl group_norm native_group_norm
        LayerNormKernelImpl layer_norm native_layer_norm.detached
        _segment_reduce_cpu segment_reduce _segment_reduce
        adaptive_avg_pool2d _adaptive_avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d
        adaptive_avg_pool2d_backward _adaptive_avg_pool2d_backward
        adaptive_avg_pool3d_backward_cpu _adaptive_avg_pool3d_backward
        adaptive_avg_pool3d_cpu _adaptive_avg_pool3d adaptive_avg_pool3d
        adaptive_max_pool2d adaptive_max_pool1d adaptive_max_pool2d
        adaptive_max_pool3d_cpu adaptive_max_pool3d
        batch_norm batch_norm instance_norm native_batch_norm _batch_norm_functional
        batch_norm _batch_norm_with_update _native_batch_norm_legit
        batch_norm _native_batch_norm_legit.no_stats
        binary_cross_entropy binary_cross_entropy
        fractional_max_pool2d_out_frame fractional_max_pool2d fractional_max_pool2d_with_indices
        fractional_max_pool3d_out_frame fractional_max_pool3d fractional_max_pool3d_with_indices
        glu_cpu glu
        grid_sampler3d_cpu grid_sampler_3d
        grid_sampler_2d_cpu_kernel_impl grid_sample grid_sampler grid_sampler_2d
        huber_cpu huber_loss
        hypot_cpu hypot
        igamma_cpu igamma
        igammac_cpu igammac
        log_softmax_backward_lastdim_kernel_impl _log_softmax_backward_data
        log_softmax_lastdim_kernel_impl _log_softmax
        logaddexp2_cpu logaddexp2
        max_pool1d_impl max_pool1d
        max_pool2d_backward max_pool2d_with_indices_backward
        max_unpool2d max_unpool1d max_unpool2d
        max_unpool3d max_unpool3d
        mse_cpu mse_loss
        nll_loss_backward_out_frame nll_loss_backward
        nll_loss_out_frame nll_loss_forward
        prelu_cpu prelu _prelu_kernel
        smooth_l1_cpu smooth_l1_loss
        softmax_backward_lastdim_kernel_impl _softmax_backward_data
        softmax_lastdim_kernel_impl _softmax _safe_softmax
    """,
    "half": """
        cdist cdist
        cholesky_cpu _linalg_cholesky linalg_cholesky linalg_cholesky_ex
        geqrf_cpu qr linalg_qr
        ldl_factor_kernel_cpu linalg_ldl_factor linalg_ldl_factor_ex
        ldl_solve_kernel_cpu linalg_ldl_solve
        linalg.lu_solve_cpu linalg_lu_solve lu_solve
        linalg_eig_out_cpu linalg_eig linalg_eigvals
        linalg_svd_cpu linalg_cond linalg_svd linalg_svdvals
        lu_cpu _linalg_solve det linalg_det linalg_solve linalg_solve_ex linalg_tensorsolve
        pdist pdist
    """,
    "bool whole half": """
        cholesky_cpu cholesky
        cholesky_inverse_out_cpu cholesky_inverse
        cholesky_solve_cpu cholesky_solve
        geqrf_cpu geqrf
        linalg_eigh_cpu linalg_eigvalsh linalg_eigh
        lu_cpu linalg_lu linalg_lu_factor linalg_lu_factor_ex lu
        orgqr_cpu linalg_householder_product orgqr
        ormqr_cpu ormqr
        triangular_solve_cpu _triangular_solve linalg_solve_triangular triangular_solve
    """,
    "half complex": """
        airy_ai_cpu special_airy_ai
        bessel_j0_cpu special_bessel_j0
        bessel_j1_cpu special_bessel_j1
        bessel_y0_cpu special_bessel_y0
        bessel_y1_cpu special_bessel_y1
        chebyshev_polynomial_t_cpu special_chebyshev_polynomial_t
        chebyshev_polynomial_u_cpu special_chebyshev_polynomial_u
        chebyshev_polynomial_v_cpu special_chebyshev_polynomial_v
        chebyshev_polynomial_w_cpu special_chebyshev_polynomial_w
        erfcx_cpu special_erfcx
        hermite_polynomial_h_cpu special_hermite_polynomial_h
        hermite_polynomial_he_cpu special_hermite_polynomial_he
        laguerre_polynomial_l_cpu special_laguerre_polynomial_l
        legendre_polynomial_p_cpu special_legendre_polynomial_p
        log_ndtr_cpu special_log_ndtr
        modified_bessel_i0_cpu special_modified_bessel_i0
        modified_bessel_i1_cpu special_modified_bessel_i1
        modified_bessel_k0_cpu special_modified_bessel_k0
        modified_bessel_k1_cpu special_modified_bessel_k1
        ndtri_cpu special_ndtri
        scaled_modified_bessel_k0_cpu special_scaled_modified_bessel_k0
        scaled_modified_bessel_k1_cpu special_scaled_modified_bessel_k1
        shifted_chebyshev_polynomial_t_cpu special_shifted_chebyshev_polynomial_t
        shifted_chebyshev_polynomial_u_cpu special_shifted_chebyshev_polynomial_u
        shifted_chebyshev_polynomial_v_cpu special_shifted_chebyshev_polynomial_v
        shifted_chebyshev_polynomial_w_cpu special_shifted_chebyshev_polynomial_w
        spherical_bessel_j0_cpu special_spherical_bessel_j0
        zeta_cpu special_zeta
    """,
    "bool whole half complex": """
        ctc_loss_cpu ctc_loss
        histogramdd histogram
        multi_margin_loss_cpu_kernel multi_margin_loss
        multilabel_margin_loss_forward_out_frame multilabel_margin_loss
    """,
    "bool signed half complex": """
        compute_index_ranges_weights _upsample_bicubic2d_aa _upsample_bilinear2d_aa
    """,
    "bool short half real complex": """
        repeat_interleave_cpu repeat_interleave.Tensor
    """,
    "bool half real complex": """
        bincount_cpu bincount
    """,
}

# What torch says otherwise, of dtypes that its cpu refuses: groups, class, sentence, rows.
_SAID: tuple[tuple[str, type[Exception], str, str], ...] = (
    ("bool", RuntimeError, "{row}(): does not support bool input",
     "argmax argmax.along argmin argmin.along"),
    ("bool", RuntimeError, "The `+` operator, on a bool tensor is not supported.", "positive"),
    ("bool", RuntimeError, "Bool inputs not supported for hardtanh", "hardtanh hardtanh.nn relu6"),
    ("bool", RuntimeError, "The input tensor may not be a boolean tensor.", "mvlgamma"),
    ("bool", RuntimeError, "trapezoid: received a bool input for `y`, but bool is not supported",
     "trapezoid trapz"),
    ("bool", RuntimeError,
     "cumulative_trapezoid: received a bool input for `y`, but bool is not supported",
     "cumulative_trapezoid"),
    ("bool half", RuntimeError,
     "linalg.vander supports floating point, complex, and integer tensors, but got {dtype}",
     "linalg_vander"),
    ("bool complex", RuntimeError, "Unsupported input type encountered for isin(): {dtype}",
     "isin"),
    ("bool whole", RuntimeError,
     "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {dtype}",
     "linalg_vector_norm"),
    ("bool whole", RuntimeError,
     "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {dtype}",
     "linalg_matrix_norm"),
    ("bool whole", RuntimeError,
     "linalg.vecdot: Expected a floating point or complex tensor as input. Got {dtype}",
     "linalg_vecdot"),
    ("bool whole complex", RuntimeError,
     "expected common dtype to be floating point, yet common dtype is {dtype}",
     "cosine_similarity"),
    ("whole", RuntimeError, "kl_div: Integral inputs not supported.", "kl_div"),
    ("whole", RuntimeError,
     "norm(): input dtype should be either floating point or complex. Got {dtype} instead.",
     "dist"),
    ("complex", RuntimeError, " Sort does not support complex dtypes on CPU",
     "sort argsort msort"),
    ("complex", NotImplementedError, "clamp is not supported for complex types",
     "clamp clamp.Tensor clamp_max clamp_min"),
    ("complex", RuntimeError, "{row} is not supported for complex tensors.", "deg2rad rad2deg"),
    ("complex", RuntimeError, "{row} not implemented for complex tensors.", "fmax fmin"),
    ("complex", RuntimeError, "{row} is not yet implemented for complex tensors.", "heaviside"),
    ("complex", RuntimeError, "{row} does not support complex inputs.", "isneginf isposinf"),
    ("complex", NotImplementedError, "{row} is not implemented for complex tensors.", "signbit"),
    ("complex", RuntimeError, "nansum on CPU does not support complex inputs", "nansum nanmean"),
    ("signed half real complex", RuntimeError,
     "where expected condition to be a boolean tensor, but got a tensor with dtype {dtype}",
     "where"),
)  # fmt: skip

# Pointwise rows of which torch asks the first tensor's dtype alone: a number does not widen it.
_FIRST = frozenset(("lerp", "where"))
_ABSENT = "\"{kernel}\" not implemented for '{{dtype}}'"


def _dtypes(groups: str) -> frozenset[Dtype]:
    return frozenset(d for name in groups.split() for d in _GROUPS[name])


# row -> for each set of dtypes that it lacks: the error's class and text
KERNELS: dict[str, list[tuple[frozenset[Dtype], type[Exception], str]]] = {}
for _groups, _lines in _LACKING.items():
    for _kernel, *_rows in (line.split() for line in _lines.strip().splitlines()):
        for _row in _rows:
            _told = (_dtypes(_groups), NotImplementedError, _ABSENT.format(kernel=_kernel))
            KERNELS.setdefault(_row, []).append(_told)
for _groups, _class, _sentence, _names in _SAID:
    for _row in _names.split():
        _text = _sentence.replace("{row}", _row.partition(".")[0])
        KERNELS.setdefault(_row, []).append((_dtypes(_groups), _class, _text))


def refuse_lacking(name: str, infer: Any, args: Sequence[Any]) -> None:
    """An error of torch's class and words where torch's cpu refuses the row's dtype.

    The dtype is the operands' common one in pointwise rows, else that of the first tensor; `args`
    has Geometries for tensors.
    """
    if isinstance(infer, Pointwise) and name not in _FIRST:
        dtype = result_type(infer.operands(args)[infer.skip :])
    else:
        flat = (a[0] if a.__class__ is tuple and a else a for a in args)
        first = next((a for a in flat if a.__class__ is Geometry), None)
        if first is None:
            return
        dtype = first.dtype
    for lacking, error, text in KERNELS[name]:
        if dtype in lacking:
            raise error(text.format(dtype=scalar_name(dtype)))
