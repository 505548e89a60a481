"""What `help` and editors show of torch's functions and methods."""

import importlib
import inspect
import types

import pytest

import mindtorch
from mindtorch.ops.spec import OPS


@pytest.mark.parametrize(
    ("function", "signature"),
    [
        ("add", "(input, other, *, alpha=1, out=None)"),
        ("matmul", "(input, other, *, out=None)"),
        ("div", "(input, other, *, out=None)"),
        ("softmax", "(input, dim, dtype=None, *, out=None, axis=None)"),
    ],
)
def test_a_function_shows_its_required_arguments_without_a_default(function, signature):
    text = getattr(mindtorch, function).__doc__  # as in torch, `inspect.signature` has none
    assert text.startswith(f"{function}{signature}\n\n")


def test_no_signature_shows_the_address_of_an_object():
    functions = [getattr(mindtorch, name) for name in mindtorch.__all__]
    methods = [getattr(mindtorch.Tensor, name) for name in dir(mindtorch.Tensor)]
    kinds = (types.BuiltinFunctionType, types.MethodDescriptorType)
    documents = [f.__doc__ for f in (*functions, *methods) if isinstance(f, kinds)]
    assert len(documents) > 1000
    assert not [text for text in documents if text and " at 0x" in text]


def test_every_public_function_and_method_says_what_it_does():
    names = {n: getattr(mindtorch, n) for n in mindtorch.__all__}
    names |= {f"Tensor.{n}": getattr(mindtorch.Tensor, n) for n in dir(mindtorch.Tensor)}
    for space in ("linalg", "fft", "special", "nn.functional", "nn.init", "optim"):
        module = importlib.import_module(f"mindtorch.{space}")
        names |= {f"{space}.{n}": getattr(module, n) for n in dir(module) if n[0] != "_"}
    public = {
        n: f
        for n, f in names.items()
        if callable(f)
        and "._" not in n
        and (getattr(f, "__module__", None) or "torch").startswith(("mindtorch", "torch"))
    }
    assert len(public) > 1500
    assert [n for n, f in public.items() if not f.__doc__] == []


@pytest.mark.parametrize("place", ["function", "method"])
def test_the_help_of_every_row_shows_schema_dtypes_npu_operators_and_errors(place):
    rows = [op for op in OPS.values() if place in op.places or "nn" in op.places]
    assert len(rows) > 400
    for op in rows:
        text = inspect.getdoc(op.entry(place))
        missing = [
            part for part in (op.text, "Dtypes: ", "On npu: ", "Raises:") if part not in text
        ]
        assert not missing, op.name
        assert all(call.name in text for call in op.kernels.aclnn), op.name
        assert not text.startswith(op.text), op.name


def test_help_shows_what_a_row_declares():
    text = inspect.getdoc(mindtorch.add)
    assert text.splitlines()[2] == "Sum `self + alpha * other`."
    assert "self, other broadcast; the result has their common shape" in text
    assert "On npu: aclnnAdds, aclnnAdd." in text
    assert "float16, bfloat16" in inspect.getdoc(mindtorch.linalg.qr)
    assert "\n\nIn place: Sum" in inspect.getdoc(mindtorch.Tensor.add_)
