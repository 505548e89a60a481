"""Runs a Python function as the kernel of a custom operator; the simulator starts and asks it.

`kernel_server.py FILE FUNCTION`, with the simulator's socket as file descriptor 3. It answers its
start, and then each call, with the length of a message and the message: none means success, and
then the bytes of the outputs follow. Of this package it imports nothing.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

SOCKET = 3
# Values of aclDataType.
DTYPES = {
    0: "float32", 1: "float16", 2: "int8", 3: "int32", 4: "uint8", 6: "int16", 7: "uint16",
    8: "uint32", 9: "int64", 10: "uint64", 11: "float64", 12: "bool", 16: "complex64",
    17: "complex128",
}  # fmt: skip
NARROW = {27: "bfloat16", 35: "float8_e5m2", 36: "float8_e4m3fn", 37: "float8_e8m0fnu"}


class KernelError(Exception):
    """The function cannot be the operator's kernel; the text says why."""


def dtype_of(number: int) -> np.dtype[Any]:
    """The numpy dtype of an aclDataType."""
    if number in DTYPES:
        return np.dtype(DTYPES[number])
    if number in NARROW:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, NARROW[number]))
    raise KernelError(f"dtype {number} of aclDataType has no numpy dtype")


class Connection:
    """The simulator's end: whole messages in and out."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._file = end.makefile("rb")

    def receive(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def request(self) -> dict[str, Any]:
        (length,) = struct.unpack("<I", self.receive(4))
        request: dict[str, Any] = json.loads(self.receive(length))
        return request

    def answer(self, message: str, arrays: Iterable[np.ndarray[Any, Any]] = ()) -> None:
        text = message.encode()
        self._end.sendall(struct.pack("<I", len(text)) + text)
        for array in arrays:
            self._end.sendall(array.tobytes())


def load(path: str, name: str) -> Callable[..., Any]:
    """The function `name` of the file at `path`."""
    sys.path.insert(0, str(Path(path).resolve().parent))
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise KernelError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise KernelError(f"it has no function {name}")
    kernel: Callable[..., Any] = function
    return kernel


def receive_tensors(request: dict[str, Any], connection: Connection) -> None:
    """Put the bytes of each input, which follow a request, into its facts as `data`."""
    for value in request["inputs"]:
        for facts in value["values"] if value["kind"] == "tensors" else ():
            facts["data"] = connection.receive(facts["bytes"])


def argument(value: dict[str, Any]) -> Any:
    """A parameter as the function gets it: array, number, text, None, or a list of them."""
    kind, items = value["kind"], value["values"]
    if kind == "absent":
        return None
    if kind == "text":
        return items
    if kind == "tensors":
        items = [tensor(one) for one in items]
    return items if value["list"] else items[0]


def tensor(facts: dict[str, Any]) -> np.ndarray[Any, Any]:
    """One input, which the function may write to."""
    flat = np.frombuffer(bytearray(facts["data"]), dtype_of(facts["dtype"]))
    return flat.reshape(facts["shape"])


def call(function: Callable[..., Any], names: list[str], values: list[Any]) -> Any:
    """The function's result: parameters by the header's names, or by position where it has
    others and as many."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return function(**dict(zip(names, values, strict=True)))
    accepted = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if set(accepted) <= set(names):
        arguments = dict(zip(names, values, strict=True))
        return function(**{name: arguments[name] for name in accepted})
    if len(accepted) == len(values):
        return function(*values)
    raise KernelError(
        f"{function.__name__} takes {', '.join(accepted)}; the operator has {', '.join(names)}"
    )


def results(result: Any, outputs: list[dict[str, Any]]) -> list[np.ndarray[Any, Any]]:
    """What goes into the outputs, in order, in their dtypes."""
    parts = result if isinstance(result, tuple) else (result,)
    if len(parts) != len(outputs):
        raise KernelError(f"it returned {len(parts)} results for {len(outputs)} outputs")
    arrays = []
    for part, output in zip(parts, outputs, strict=True):
        members = part if output["list"] else [part]
        facts = output["values"]
        if output["kind"] == "absent":
            continue
        if len(members) != len(facts):
            raise KernelError(f"{output['name']} has {len(facts)} tensors, not {len(members)}")
        arrays += [fitted(m, f, output["name"]) for m, f in zip(members, facts, strict=True)]
    return arrays


def fitted(member: Any, facts: dict[str, Any], name: str) -> np.ndarray[Any, Any]:
    """A result in the output's dtype; KernelError where its shape is another."""
    if hasattr(member, "detach"):  # torch
        member = member.detach().cpu().numpy()
    array = np.asarray(member)
    if list(array.shape) != facts["shape"]:
        raise KernelError(f"{name} has shape {facts['shape']}, the result {list(array.shape)}")
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(array.astype(dtype_of(facts["dtype"]), copy=False))


def reason(error: BaseException) -> str:
    """What went wrong, in one line, with the last line of the person's file that it came from."""
    if isinstance(error, KernelError):
        return str(error)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    at = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{at}"


def serve(function: Callable[..., Any], connection: Connection) -> None:
    """Answer calls until the simulator's process ends."""
    while True:
        try:
            request = connection.request()
            receive_tensors(request, connection)
        except EOFError:
            return
        try:
            parameters = [*request["inputs"], *request["attributes"]]
            values = [argument(value) for value in parameters]
            names = [value["name"] for value in parameters]
            arrays = results(call(function, names, values), request["outputs"])
        except Exception as error:  # of the person's function: the answer says which
            connection.answer(reason(error))
        else:
            connection.answer("", arrays)


def main(path: str, name: str) -> None:
    """Load the function, say whether that worked, and serve."""
    sys.stdout = sys.stderr  # what the function prints is no part of the program's output
    connection = Connection(socket.socket(fileno=SOCKET))
    try:
        function = load(path, name)
    except BaseException as error:
        connection.answer(reason(error))
        return
    connection.answer("")
    serve(function, connection)


if __name__ == "__main__":
    os.environ.pop("ACLSIM_KERNELS", None)
    main(*sys.argv[1:3])
