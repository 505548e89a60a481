"""What people and editors see of operators and device arrays, without calling them."""

import inspect
import re

import numpy as np
import pytest
from stub_acl import Stub

import aclnn_bindings
from aclnn_bindings import lib
from aclnn_bindings.call.marshal import rule_of
from aclnn_bindings.call.specs import RawHandle
from aclnn_bindings.errors import ArgumentError, MissingSymbolError
from aclnn_bindings.interface.signature import Direction


def test_an_operator_tells_its_name_signature_and_declaration(stub: Stub) -> None:
    add = stub.cann.ops.aclnnAdd
    assert add.__name__ == add.__qualname__ == "aclnnAdd"
    assert list(inspect.signature(add).parameters) == ["self", "other", "alpha", "out", "stream"]
    assert "const aclScalar *" in inspect.getdoc(add)
    assert "alpha: const aclScalar * (in" in inspect.getdoc(add)
    odd = inspect.signature(stub.cann.ops.aclnnStubOdd)
    assert odd.parameters["count"].default is None
    assert odd.parameters["scale"].kind is inspect.Parameter.KEYWORD_ONLY


def test_every_operator_has_a_signature(stub: Stub) -> None:
    functions = stub.cann.functions
    for name in ("aclrtMalloc", "aclnnStubWeightSize", "stubNothing"):
        assert inspect.signature(functions[name]) is not None


def test_what_is_missing_is_an_attribute_error_with_a_reason(stub: Stub) -> None:
    ops = stub.cann.ops
    assert not hasattr(ops, "aclnnNoSuch")
    assert getattr(ops, "aclnnNoSuch", None) is None
    assert not hasattr(ops, "aclnnStubMissing")
    with pytest.raises(AttributeError, match=r"near: aclnnAdd"):
        _ = ops.aclnnAddd
    with pytest.raises(MissingSymbolError):
        _ = ops["aclnnNoSuch"]
    with pytest.raises(AttributeError, match=r"near: aclnnAdd"):
        _ = ops.add  # as torch calls it
    assert "aclnnAdd" in dir(ops)
    assert len(ops) == len(dir(ops))


def test_a_device_array_says_what_it_is(stub: Stub) -> None:
    tensor = stub.cann.tensor(np.zeros((2, 3), np.float16))
    assert (tensor.dtype, tensor.ndim, tensor.size, len(tensor)) == (np.float16, 2, 6, 2)
    assert tensor.device.index == 0
    with pytest.raises(TypeError, match="on the device"):
        bool(tensor)
    assert repr(tensor) == "DeviceTensor(FLOAT16[2, 3] on Device(0))"
    tensor.close()
    assert repr(tensor) == "DeviceTensor(FLOAT16[2, 3] on Device(0), closed)"


def test_every_object_says_what_it_is(stub: Stub) -> None:
    cann = stub.cann
    event = cann.runtime.current_stream().record()
    shown = (cann, cann.ops, cann.functions, cann.runtime, cann.runtime.current_stream(), event)
    shown = (*shown, cann.ops.aclnnAdd, cann.functions.aclrtMalloc, cann.empty(2), cann.install)
    assert [repr(one) for one in shown if " object at 0x" in repr(one)] == []
    assert repr(cann.functions.aclrtMalloc) == "aclrtMalloc(devPtr, size, policy)"
    assert repr(event) == "Event(device 0)"


def test_the_package_has_a_version_and_only_its_own_names() -> None:
    assert aclnn_bindings.__version__
    assert {"open", "Cann"} <= set(dir(aclnn_bindings))
    assert not {"Any", "Final", "annotations", "importlib"} & set(dir(aclnn_bindings))


@pytest.mark.parametrize("shape", [3, np.int64(3), (3,), [3], np.array([3])])
def test_a_shape_is_whatever_numpy_takes(stub: Stub, shape: object) -> None:
    tensor = stub.cann.empty(shape)
    assert tensor.shape == (3,)
    assert tensor.view(shape).shape == (3,)
    assert tensor.view((1, 3)).spec.strides == (3, 1)


@pytest.mark.parametrize(
    "shape", [-1, (2, -1), (2.0,), 2.5, "ab", None, (1 << 62, 2), (1 << 70,), [[1]], {"a": 1}]
)
def test_what_is_no_shape_is_refused_by_name(stub: Stub, shape: object) -> None:
    with pytest.raises(ArgumentError, match="shape"):
        stub.cann.empty(shape)


def test_a_view_stays_in_its_storage(stub: Stub) -> None:
    tensor = stub.cann.empty(4)
    with pytest.raises(ArgumentError, match="reaches element 4 of a storage of 4"):
        tensor.view(5)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        ([[1], [1, 2]], "inhomogeneous"),
        (np.ma.array([1, 2], mask=[0, 1]), "masked"),
        (np.array([None]), "object"),
        ("abc", "U3"),
    ],
)
def test_values_that_no_device_holds_are_refused_by_name(
    stub: Stub, array: object, words: str
) -> None:
    with pytest.raises(ArgumentError, match=f"tensor of .*{words}"):
        stub.cann.tensor(array)


@pytest.mark.parametrize("value", [np.ones(2, np.float32), [1.0], 1])
def test_values_of_the_host_in_a_tensors_place_say_how_they_get_there(
    stub: Stub, value: object
) -> None:
    out = stub.cann.empty(2)
    with pytest.raises(ArgumentError, match=r"self: expected a device tensor.*cann\.tensor"):
        stub.cann.ops.aclnnAdd(value, out, 1.0, out)
    with pytest.raises(ArgumentError, match="alpha: expected a number"):
        stub.cann.ops.aclnnAdd(out, out, np.ones(2), out)


def test_numpy_takes_a_device_array(stub: Stub) -> None:
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = stub.cann.tensor(host)
    assert (np.asarray(tensor) == host).all()
    assert np.asarray(tensor, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        tensor.__array__(copy=False)


def test_dlpack_gives_a_copy_on_the_host_and_nothing_else(stub: Stub) -> None:
    host = np.arange(6, dtype=np.float32)
    tensor = stub.cann.tensor(host)
    assert tensor.__dlpack_device__() == (12, 0)
    assert tensor.__dlpack__(dl_device=(1, 0)) is not None
    for refused in ({}, {"dl_device": (1, 0), "copy": False}):
        with pytest.raises(BufferError):
            tensor.__dlpack__(**refused)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("FLOAT", "FLOAT"), ("ACL_INT8", "INT8"), ("float32", "FLOAT"), ("float64", "DOUBLE"),
     (np.float16, "FLOAT16"), (np.dtype(">i8"), "INT64"), (bool, "BOOL"), ("bfloat16", "BFLOAT16"),
     ("f4", "FLOAT"), ("<i8", "INT64"), ("u1", "UINT8"), ("int4", "INT4")],
)  # fmt: skip
def test_element_types_by_any_name(stub: Stub, kind: object, name: str) -> None:
    assert stub.cann.empty((2,), kind).spec.dtype == name


@pytest.mark.parametrize(
    "kind", ["complex", object(), np.dtype("U3"), "float128", None, "f16", "i3"]
)
def test_an_element_type_that_acl_lacks_is_refused(stub: Stub, kind: object) -> None:
    with pytest.raises(ArgumentError, match="dtype"):
        stub.cann.empty((2,), kind)


@pytest.mark.parametrize("stream", [0, 1, "default"])
def test_a_stream_that_is_none_is_refused_by_name(stub: Stub, stream: object) -> None:
    out = stub.cann.empty((2,))
    with pytest.raises(ArgumentError, match="expected a Stream, or None"):
        stub.cann.ops.aclnnAdd(out, out, 1.0, out, stream=stream)


def test_a_handle_is_what_acl_takes_and_an_address_what_these_bindings_take(stub: Stub) -> None:
    functions, device = stub.cann.functions, stub.cann.runtime.device()
    with device.stream() as stream, stream.record() as event:
        assert lib.mt_stream_handle(stream.address) == stream.handle != stream.address
        assert lib.mt_event_handle(event.address) == event.handle != event.address
        for given in (stream, stream.handle):  # an object stands for its handle
            functions["aclrtSynchronizeStream"](given)
        functions["aclrtSynchronizeStream"](RawHandle(stream.handle))
        tensor = stub.cann.tensor(np.zeros(4, np.float32))
        assert tensor.address == tensor.buffer.address
        assert tensor.view((2,), (1,), offset=2).address == tensor.address
        assert not hasattr(tensor, "handle")


@pytest.mark.parametrize("number", [123, np.uint64(1 << 40)])
def test_a_number_that_is_no_handle_of_this_session_is_refused(stub: Stub, number: int) -> None:
    """A function of ACL follows what it gets: it would end the process."""
    text = rf"stream: {int(number):#x} is no aclrtStream .*; RawHandle\("
    with pytest.raises(ArgumentError, match=text):
        stub.cann.functions.aclrtSynchronizeStream(number)


def test_a_handle_that_a_function_returned_is_known_until_the_session_ends(simulator) -> None:
    simulator.runtime.device()
    stream = simulator.functions.aclrtCreateStream()
    simulator.functions.aclrtSynchronizeStream(stream)
    simulator.functions.aclrtDestroyStream(stream)
    simulator.close()
    with pytest.raises(ArgumentError, match="is no aclrtStream"):
        simulator.functions.aclrtSynchronizeStream(stream)


@pytest.fixture
def simulator(monkeypatch):
    with aclnn_bindings.open(simulator=True) as cann:
        monkeypatch.setenv("ASCEND_HOME_PATH", str(cann.install.root))
        yield cann


def test_a_text_that_a_function_writes_comes_back(simulator) -> None:
    version = simulator.function("aclsysGetVersionStr")
    told = version("runtime")
    assert re.match(r"\d+\.\d+", told)
    room = bytearray(128)
    assert version("runtime", room) is None
    assert room.partition(b"\0")[0].decode() == told
    with pytest.raises(ArgumentError, match="versionStr: expected a buffer to write to"):
        version("runtime", b"\0" * 128)


def test_what_is_not_writable_is_no_memory_for_a_text(simulator) -> None:
    package = simulator.declarations.functions["aclsysGetVersionStr"].params[0]
    assert package.direction is Direction.IN  # an input, though its type does not say const
    room = np.zeros(8, np.uint8)
    assert rule_of(package, {})(package, room, []) == room.ctypes.data
    with pytest.raises(ArgumentError, match="a writable buffer"):
        rule_of(package, {})(package, memoryview(b"fixed"), [])
