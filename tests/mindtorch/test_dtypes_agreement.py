"""What torch's cpu kernels lack is refused in its words, and nothing else: each row, each dtype."""

import warnings

import pytest
from mindtorch_npu.laws.compare import call, oracle_function

import mindtorch
from mindtorch._compat.unsupported_dtypes import dtypes, refuse
from mindtorch.ops.spec import OPS

torch = pytest.importorskip("torch", reason="torch 2.13 is the oracle")
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "complex64")
# Rows of which torch chooses one of two kernels by the shape: the error names one.
NAMES_DIFFER = {"histc", "conv1d", "conv2d", "matmul", "inner", "linalg_eigvals", 
                "lerp", "linalg_cond", "linalg_lu_solve", "lu_solve", "linear"}  # fmt: skip


def in_dtype(value, library, first, dtype):
    if isinstance(value, library.Tensor):
        return value.to(getattr(library, dtype)) if value.dtype is first else value
    if isinstance(value, list | tuple) and any(isinstance(v, library.Tensor) for v in value):
        return type(value)(in_dtype(v, library, first, dtype) for v in value)
    return value


def refusal(op, library, dtype):
    """The error's class and text; "" for a result."""
    sample = next(s for s in op.testing.samples() if not s.error)
    args, kwargs = sample.make(library)
    values = [*args, *kwargs.values()]
    flat = [v[0] if isinstance(v, list | tuple) and v else v for v in values]
    first = next((v.dtype for v in flat if isinstance(v, library.Tensor)), None)
    try:
        args = [in_dtype(v, library, first, dtype) for v in args]
        kwargs = {k: in_dtype(v, library, first, dtype) for k, v in kwargs.items()}
        if first is None:
            kwargs["dtype"] = getattr(library, dtype)
        library.manual_seed(0)
        if library is torch:
            oracle_function(op, torch)(*args, **kwargs)
        else:
            call(op, args, kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return ""


mindtorch.zeros(1)  # rows load with the first tensor
# Parts of rows of which torch has no function.
PARTS = {"_convolution_weight_grad", "_nll_loss_weighted", "_nll_loss_backward_weighted",
         "binary_cross_entropy_with_logits_backward"}  # fmt: skip
LACKING = sorted(name for name, op in OPS.items() if op.dtypes.unsupported and name not in PARTS)


def lacking(name):
    return {
        str(d).removeprefix("torch.")
        for groups in OPS[name].dtypes.unsupported
        for d in dtypes(groups)
    }


@pytest.mark.parametrize("name", LACKING)
def test_a_row_refuses_the_dtypes_that_torchs_kernel_lacks(name):
    op = OPS[name]
    if op.testing.samples is None:
        pytest.skip(f"{name} has no samples: {op.testing.unsampled}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in DTYPES:
            theirs, ours = (refusal(op, library, dtype) for library in (torch, mindtorch))
            if name in NAMES_DIFFER and theirs:
                assert ours, dtype
            elif dtype in lacking(name) or not theirs:
                assert ours == theirs, dtype


def test_a_dtype_that_no_kernel_lacks_is_let_through():
    geom = mindtorch.zeros(2)._geom
    assert refuse(OPS["mm"].dtypes.unsupported, None, [geom]) is None
    with pytest.raises(NotImplementedError, match=r"addmm_impl_cpu_.*Bool"):
        refuse(OPS["mm"].dtypes.unsupported, None, [mindtorch.zeros(2, dtype=mindtorch.bool)._geom])
