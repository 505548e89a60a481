"""Objects whose construction was cut off end without a word, as an interrupt may leave them."""

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import pytest

import aclnn_bindings.call
import aclnn_bindings.runtime
import mindtorch
import mindtorch._backends.npu
import mindtorch.utils.data

PACKAGES = (aclnn_bindings.call, aclnn_bindings.runtime, mindtorch._backends.npu,
            mindtorch.utils.data)  # fmt: skip
KNOWN = {"Buffer", "CapturedGraph", "Event", "PinnedBuffer", "Plan", "Stream", "Descriptor"}


def modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


CLASSES = {
    value.__name__: value
    for package in PACKAGES
    for module in modules(package)
    for value in vars(module).values()
    if isinstance(value, type) and value.__module__ == module.__name__ and hasattr(value, "__del__")
}


def test_the_classes_that_own_handles_are_among_them() -> None:
    assert set(CLASSES) >= KNOWN


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_an_object_without_an_init_ends_quietly(name: str) -> None:
    cls = CLASSES[name]
    cls.__del__(cls.__new__(cls))


def test_every_attribute_may_be_missing(capfd: pytest.CaptureFixture[str]) -> None:
    for cls in CLASSES.values():
        cls.__new__(cls)  # ends at once; Python prints what __del__ raises
    assert capfd.readouterr().err == ""
