"""Runs one function on torch and on mindtorch, and compares what comes out, errors included."""

import math

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def outcome(namespace, function, text=True):
    """What `function(namespace)` gives, as plain data that two libraries can agree on."""
    try:
        return plain(function(namespace))
    except Exception as error:
        return ("raised", type(error).__name__, str(error).split("\n")[0] if text else "")


def plain(value):
    if hasattr(value, "storage_offset"):
        layout = tuple(value.stride()) if value.numel() else ()
        host = value.detach()
        if value.device.type == "meta":
            host = host.new_zeros(0, device="cpu")
        values = host.double().reshape(-1).tolist()
        if str(value.dtype).startswith("torch.complex"):
            values = host.reshape(-1).tolist()
        shown = tuple("nan" if isinstance(v, float) and math.isnan(v) else v for v in values)
        return ("tensor", shown, str(value.dtype), tuple(value.shape), layout, value.requires_grad)
    if isinstance(value, tuple | list):
        return tuple(plain(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, plain(v)) for k, v in value.items())
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value
    if isinstance(value, int | str | bool | None.__class__):
        return value
    return str(value)


def rounded(value, digits):
    """The same data with numbers to `digits` significant digits: libraries round differently."""
    if isinstance(value, tuple):
        return tuple(rounded(v, digits) for v in value)
    if isinstance(value, complex):
        return (rounded(value.real, digits), rounded(value.imag, digits))
    return float(f"{round(value, digits):.{digits}g}") if isinstance(value, float) else value


def agree(function, text=True, digits=None):
    """Assert that torch and mindtorch do the same."""
    expected = outcome(torch, function, text)
    got = outcome(mindtorch, function, text)
    if digits is not None:
        expected, got = rounded(expected, digits), rounded(got, digits)
    detail = f"mindtorch {got}\ntorch     {expected}"
    assert got == expected, detail
    return expected
