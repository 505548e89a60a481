"""What `help` and editors show of torch's functions and methods."""

import inspect

import pytest

import mindtorch


@pytest.mark.parametrize(
    ("function", "signature"),
    [
        ("add", "(input, other, *, alpha=1, out=None)"),
        ("matmul", "(input, other, *, out=None)"),
        ("div", "(input, other, *, out=None)"),
        ("softmax", "(input, dim, *, dtype=None, out=None, axis=None)"),
    ],
)
def test_a_function_shows_its_required_arguments_without_a_default(function, signature):
    assert str(inspect.signature(getattr(mindtorch, function))) == signature


def test_no_signature_shows_the_address_of_an_object():
    functions = [getattr(mindtorch, name) for name in mindtorch.__all__]
    methods = [getattr(mindtorch.Tensor, name) for name in dir(mindtorch.Tensor)]
    signatures = [
        str(inspect.signature(f)) for f in (*functions, *methods) if inspect.isfunction(f)
    ]
    assert len(signatures) > 1000
    assert not [text for text in signatures if " at 0x" in text]
