"""Owns fake tensors: tensors of the meta device that show the device they stand for.

A call with a fake tensor, or inside a `FakeTensorMode`, runs on the meta device with its gradients;
what asks for values is refused, but for numbers that the program wrote itself.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NoReturn

from .._autograd.grad_mode import LOCAL
from .._dispatch.new_sizes import SizeOfValues
from .._dispatch.overrides import TorchFunctionMode
from .._tensor.device import device as Device, get_default_device
from .._tensor.dtype import bool as boolean, dtype as Dtype
from .._tensor.geometry import Size
from .._tensor.subclass import LOCAL as SUBCLASS, off
from .._tensor.tensor import Tensor
from ..ops.aten_overloads import call_of_function
from ..ops.spec import aten
from ..utils._pytree import tree_flatten, tree_map

SLOTS = ("_geom", "_storage", "_base", "_fn", "_nr", "_creation", "_grad", "_names", "_retains")
# Methods that ask for values.
VALUES = frozenset(("__bool__", "__complex__", "__contains__", "__float__", "__index__", "__int__",
                    "equal", "item", "tolist"))  # fmt: skip
# Functions whose results have sizes that depend on values.
OF_UNKNOWN_SIZE = frozenset((
    "argwhere", "bincount", "masked_select", "nonzero", "unique", "unique_consecutive",
))  # fmt: skip
# Functions that make tensors of numbers.
FACTORIES = frozenset((
    "arange", "bartlett_window", "blackman_window", "empty", "empty_strided", "eye", "full",
    "hamming_window", "hann_window", "kaiser_window", "linspace", "logspace", "ones", "rand",
    "randint", "randn", "randperm", "scalar_tensor", "tensor", "tril_indices", "triu_indices",
    "zeros",
))  # fmt: skip
# Functions that read what the program has: numbers, arrays.
_OF_VALUES = frozenset(("as_tensor", "asarray", "from_numpy", "frombuffer", "tensor"))
_MOVES = frozenset(("cpu", "cuda", "npu"))
_META = Device("meta")
_HOME = "mindtorch._subclasses.fake_tensor"  # where torch has the classes


class DataDependentOutputException(RuntimeError):
    """A call needs values of a fake tensor."""

    __module__ = _HOME

    def __init__(self, func: object):
        super().__init__(str(func))
        self.func = func


class DynamicOutputShapeException(RuntimeError):
    """The sizes of a call's result depend on values of a fake tensor."""

    __module__ = _HOME

    def __init__(self, func: object):
        super().__init__(str(func))
        self.func = func


class UnsupportedFakeTensorException(RuntimeError):
    """There are no fake tensors of this kind."""

    __module__ = _HOME


class FakeTensorDeviceMismatchError(RuntimeError):
    """A call has fake tensors of several devices."""

    __module__ = _HOME


class outside:  # noqa: N801 - a context
    """Inside, calls are nobody's: neither traced nor seen by modes, nor by `classes` of tensors."""

    def __init__(self, classes: bool = True) -> None:
        self._off = off() if classes else nullcontext()

    def __enter__(self) -> None:
        self._modes = LOCAL.functions, LOCAL.dispatches
        LOCAL.functions = LOCAL.dispatches = ()
        self._off.__enter__()

    def __exit__(self, *error: object) -> None:
        self._off.__exit__(None, None, None)
        LOCAL.functions, LOCAL.dispatches = self._modes


def meta_like(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """A meta tensor of a tensor's dtype and layout; of its strides where the shape is its own."""
    with outside():
        same = tuple(shape) == tuple(tensor._geom.shape)
        size, strides = tuple(shape), tuple(tensor._geom.strides)
        meta = (
            aten.empty_strided(size, strides, dtype=tensor.dtype, device=_META)
            if same
            else aten.empty(size, dtype=tensor.dtype, device=_META)
        )
        result: Tensor = meta.requires_grad_(tensor.requires_grad)
        return result


class FakeTensor(Tensor):
    """A tensor without values: of the meta device to kernels, of `fake_device` to programs."""

    __module__ = _HOME

    fake_mode: FakeTensorMode
    fake_device: Device
    constant: Tensor | None = None
    _is_param: bool

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        leaves, _ = tree_flatten((args, kwargs))
        fake = next((v for v in leaves if isinstance(v, FakeTensor)), None)
        return NotImplemented if fake is None else fake.fake_mode.call(func, args, kwargs or {})

    @staticmethod
    def _operator_call(
        operator: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """A call of an operator of the program's own, by its fake."""
        return _fakes((args, kwargs))[0].fake_mode.call(operator, tuple(args), kwargs)

    @property
    def device(self) -> Device:
        return self._geom.device if SUBCLASS.off else self.fake_device

    def numpy(self, *_: object, force: bool = False) -> NoReturn:
        """Refused: there are no values."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def data_ptr(self) -> int:
        """0: there is no memory."""
        return 0

    def __deepcopy__(self, memo: dict[int, object]) -> FakeTensor:
        if id(self) not in memo:
            memo[id(self)] = copied = self.fake_mode.stand_in(self, self.fake_device)
            copied.__dict__.update(self.__dict__)
        result: Any = memo[id(self)]
        return result

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        geom = self._geom
        return _rebuilt, (tuple(geom.shape), tuple(geom.strides), geom.dtype, self.fake_device)

    def __repr__(self, **_: object) -> str:
        from .._functional.printing import tensor_text

        with outside():
            text = tensor_text(self)
        device = self.fake_device
        suffix = f"device='{device}', " if device.type != "cpu" else ""
        return text.replace("device='meta', ", suffix, 1)


def _is_on(kind: str) -> property:
    return property(lambda fake: bool(fake.device.type == kind))


for _kind in ("meta", "cpu", "cuda", "npu"):
    setattr(FakeTensor, f"is_{_kind}", _is_on(_kind))


_DEFAULT: list[FakeTensorMode] = []


def default_mode() -> FakeTensorMode:
    """The mode of fake tensors that tracing makes."""
    if not _DEFAULT:
        _DEFAULT.append(FakeTensorMode())
    return _DEFAULT[0]


def _rebuilt(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: Dtype, device: Device
) -> FakeTensor:
    with outside():
        meta = aten.empty_strided(shape, strides, dtype=dtype, device=_META)
    return default_mode().stand_in(meta, device)


class FakeTensorMode(TorchFunctionMode):
    """Inside, tensors are fake (torch._subclasses.FakeTensorMode).

    `allow_non_fake_inputs`: calls may have plain tensors, whose values nobody reads. Sizes are
    numbers, with a `shape_env` too.
    """

    __module__ = _HOME

    def __init__(
        self, *, allow_fallback_kernels: bool = True, allow_non_fake_inputs: bool = False,
        shape_env: object = None, static_shapes: bool | None = None, export: bool = False,
    ):  # fmt: skip
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs, self.shape_env = allow_non_fake_inputs, shape_env
        self.static_shapes = shape_env is None if static_shapes is None else static_shapes
        self._known: dict[int, tuple[weakref.ref[Tensor], FakeTensor]] = {}

    def from_tensor(self, tensor: Tensor, **_: object) -> FakeTensor:
        """The fake tensor of a tensor's sizes, dtype, device and strides: the same one each time.

        AssertionError for a fake tensor of another mode.
        """
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise AssertionError(self._mixing(tensor))
            return tensor
        source, known = self._known.get(id(tensor), (None, None))
        if known is None or source is None or source() is not tensor:
            known = self.stand_in(meta_like(tensor, tensor.shape), tensor.device)
            known._is_param = getattr(tensor, "_is_param", False)
            self._known[id(tensor)] = weakref.ref(tensor), known
        return known

    fake_tensor_converter = property(lambda self: self)

    def stand_in(self, meta: Tensor, device: Device) -> FakeTensor:
        """A fake tensor of a meta tensor's geometry and history."""
        fake: FakeTensor = object.__new__(FakeTensor)
        for name in SLOTS:
            value = getattr(meta, name, None)
            if value is not None or name in ("_base", "_fn"):
                setattr(fake, name, value)
        fake.fake_mode, fake.fake_device = self, device
        return fake

    def _mixing(self, tensor: FakeTensor) -> str:
        return f"Mixing fake modes NYI x.fake_mode={tensor.fake_mode} vs self={self}"

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        return self.call(func, args, kwargs or {})

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call on the meta device, whose results are fake."""
        name = getattr(func, "__name__", "")
        if name in _OF_VALUES and not _fakes(args):
            return self._constant(func, args, kwargs)
        if name == "__setitem__":
            return _set_items(self, func, args, kwargs)
        fakes = _fakes((args, kwargs))
        for fake in fakes:
            if fake.fake_mode is not self:
                raise AssertionError(self._mixing(fake))
        if name in VALUES and fakes:
            return _values(func, name, args, kwargs)
        if (operator := _of_unknown_size(name, args, kwargs)) is not None:
            raise DynamicOutputShapeException(f"aten.{operator}")
        if name == "allclose":
            raise DataDependentOutputException("aten.allclose.default")
        if name == "__getitem__" and any(f._geom.dtype is boolean for f in _fakes(args[1])):
            raise DynamicOutputShapeException("aten.nonzero.default")
        device = _device(name, args, kwargs, fakes)
        plain = [v for v in tree_flatten((args, kwargs))[0] if _is_plain(v)]
        metas = _on_meta(name, self, args, kwargs)
        try:
            with outside(), self._fake_to_hooks(device):
                result = func(*metas[0], **metas[1])
        except SizeOfValues:
            raise DynamicOutputShapeException(getattr(func, "default", func)) from None
        except RuntimeError as error:
            if plain and not self.allow_non_fake_inputs:
                raise AssertionError(
                    plain_tensor_error(*_plain_operator(name, args, kwargs))
                ) from None
            raise of_sizes(error, fakes) from None
        if plain and not self.allow_non_fake_inputs and _tensors(result):
            raise AssertionError(plain_tensor_error(*_plain_operator(name, args, kwargs)))
        result = self._wrapped(result, device, name == "to" or name in _MOVES)
        if any(f.constant is not None for f in fakes):
            _follow(func, args, kwargs, result)
        return result

    @contextmanager
    def _fake_to_hooks(self, device: Device) -> Iterator[None]:
        """Inside, hooks of saved tensors get fake ones."""
        before = LOCAL.pack
        if not before or not isinstance(before, tuple):
            yield
            return
        pack, unpack = before[-1]

        def packed(tensor: Tensor) -> Any:
            plain = _is_plain(tensor) and tensor._geom.device.type == "meta"
            return pack(self.stand_in(tensor, device) if plain else tensor)

        LOCAL.pack = (*before[:-1], (packed, unpack))
        try:
            yield
        finally:
            LOCAL.pack = before

    def _constant(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> FakeTensor:
        device = kwargs.get("device")
        kwargs = {k: v for k, v in kwargs.items() if k != "device"}
        with outside():
            real = func(*args, **kwargs)
        fake = self.stand_in(meta_like(real, real.shape), _indexed(device or real.device))
        fake.constant = real if real.numel() == 1 else None
        return fake

    def _wrapped(self, result: Any, device: Device, moves: bool) -> Any:
        def wrap(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            if isinstance(value, FakeTensor):
                moved = moves and value.fake_device != device
                return self.stand_in(value, device) if moved else value
            if value._geom.device.type != "meta":
                return self.from_tensor(value)
            object.__setattr__(value, "__class__", FakeTensor)
            value.__dict__.update(fake_mode=self, fake_device=device)
            return value

        return tree_map(wrap, result, is_leaf=lambda v: isinstance(v, Size))


def _of_unknown_size(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str | None:
    """The operator whose result is as long as values say; None for other calls."""
    if name == "repeat_interleave" and "output_size" not in kwargs:
        repeats = args[1] if len(args) > 1 else kwargs.get("repeats", args[0])
        return "repeat_interleave.Tensor" if isinstance(repeats, Tensor) else None
    if name not in OF_UNKNOWN_SIZE:
        return None
    if name in ("argwhere", "nonzero"):
        return "nonzero.default"
    if name == "unique":
        places = kwargs.get("dim", args[4] if len(args) > 4 else None)
        return "_unique2.default" if places is None else "unique_dim.default"
    return f"{name}.default"


def _is_plain(value: object) -> bool:
    return isinstance(value, Tensor) and not isinstance(value, FakeTensor)


def _tensors(values: object) -> list[Tensor]:
    return [v for v in tree_flatten(values)[0] if isinstance(v, Tensor)]


def _fakes(values: object) -> list[FakeTensor]:
    return [v for v in tree_flatten(values)[0] if isinstance(v, FakeTensor)]


def _known(values: object) -> Any:
    """Values with the numbers that the program wrote; None where some are not known."""
    plain = tree_map(lambda v: v.constant if isinstance(v, FakeTensor) else v, values)
    known = all(f.constant is not None for f in _fakes(values))
    return plain if known else None


def _follow(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: object
) -> None:
    """Compute with the numbers that the program wrote, where all are known."""
    if not isinstance(result, FakeTensor):
        return
    known = _known((args, kwargs))
    if known is None or result._geom.numel != 1:
        result.constant = None
        return
    with outside():
        result.constant = func(*known[0], **known[1])


def _values(
    func: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    known = _known((args, kwargs))
    if known is not None:
        with outside():
            return func(*known[0], **known[1])
    if name in ("item", "__float__", "__int__", "__bool__") and args[0]._geom.numel != 1:
        count = args[0]._geom.numel
        if name == "__bool__":
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        raise RuntimeError(f"a Tensor with {count} elements cannot be converted to Scalar")
    operator = "equal" if name == "equal" else "_local_scalar_dense"
    raise DataDependentOutputException(f"aten.{operator}.default")


def _set_items(
    mode: FakeTensorMode, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    metas = _on_meta("__setitem__", mode, args, kwargs)
    with outside():
        func(*metas[0], **metas[1])


def _indexed(device: Any) -> Device:
    device = Device(device)
    if device.type not in ("cpu", "meta") and device.index is None:
        return Device(device.type, 0)
    return device


def _device(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fakes: Sequence[FakeTensor]
) -> Device:
    """The device of a call's results: the one that it names, or that of its tensors."""
    named = kwargs.get("device")
    named = next((v for v in args if isinstance(v, Device)), named)
    if name == "to" and len(args) > 1 and isinstance(args[1], str):
        named = args[1]
    if name == "to" and len(args) > 1 and isinstance(args[1], FakeTensor):
        named = args[1].fake_device
    if name in _MOVES and fakes:
        named = name
    if named is not None:
        return _indexed(named)
    several = [f for f in fakes if f._geom.ndim or f.fake_device.type != "cpu"] or list(fakes)
    devices = list(dict.fromkeys(f.fake_device for f in several))
    if len(devices) > 1 and name not in ("copy_", "__get__", "__set__"):
        raise FakeTensorDeviceMismatchError(
            "Expected all tensors to be on the same device, but found at least two devices,"
            f" {devices[0]} and {devices[1]}!"
        )
    return devices[0] if devices else get_default_device()


def _on_meta(name: str, mode: FakeTensorMode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def meta(value: Any) -> Any:
        if isinstance(value, Device):
            return _META
        return meta_like(value, value.shape) if _is_plain(value) else value

    args, kwargs = tree_map(meta, (args, kwargs))
    if isinstance(kwargs.get("device"), str) or (
        name in FACTORIES and kwargs.get("device") is None
    ):
        kwargs = {**kwargs, "device": _META}
    if name == "to" and len(args) > 1 and isinstance(args[1], str):
        args = (args[0], _META, *args[2:])
    return args, kwargs


def of_sizes(error: Exception, fakes: Sequence[Tensor]) -> Exception:
    """torch's words for shapes that do not broadcast; other errors as they are."""
    if str(error).startswith("mat1 and mat2 shapes cannot be multiplied"):
        a, b = (list(f._geom.shape) for f in fakes[-2:])
        return RuntimeError(f"a and b must have same reduction dim, but got {a} X {b}.")
    if not str(error).startswith("The size of tensor a ("):
        return error
    common: list[int] = []
    for at, fake in enumerate(fakes):
        shape = list(fake._geom.shape)
        common = [1] * (len(shape) - len(common)) + common
        for dim in range(-1, -1 - len(shape), -1):
            if shape[dim] != 1 and common[dim] not in (1, shape[dim]):
                return RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[dim]} at {dim}!"
                    f" Mismatching argument at index {at} had {fake._geom.shape}; but expected"
                    f" shape should be broadcastable to {common}"
                )
            common[dim] = max(common[dim], shape[dim]) if common[dim] != 0 else 0
    return error


_PRODUCTS = {(2, 2): "mm", (2, 1): "mv", (1, 1): "dot", (3, 3): "bmm"}


def _plain_operator(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[object, Sequence[Any]]:
    """The operator that torch is at when it meets a plain tensor, with its arguments."""
    name = name.strip("_") if name[:2] == "__" else name
    if name == "matmul":
        name = _PRODUCTS.get((args[0]._geom.ndim, args[1]._geom.ndim), name)
    if name == "linear" and active_fake_mode() is None and len(args) > 2:
        name, args = "addmm", (args[2], args[0], args[1].t())
    elif name == "linear":
        name, args = "t", args[1:2]
    call = call_of_function(name, args, kwargs)
    return (call[0], call[1]) if call else (f"aten.{name}.default", args)


def plain_tensor_error(operator: object, places: Sequence[Any]) -> str:
    """What torch says of a plain tensor among an operator's fake ones."""
    texts = ", ".join(map(_text_of, places))
    return (
        "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with"
        f" 'allow_non_fake_inputs'. Found in {operator}({texts})"
    )


def _text_of(value: object) -> str:
    if not _is_plain(value) or getattr(value, "is_meta", False):
        return repr(value)
    tensor: Any = value
    text = f"tensor([...], size={tuple(tensor.shape)}"
    text += ", requires_grad=True)" if tensor.requires_grad else ")"
    return f"Parameter containing:\n{text}" if getattr(tensor, "_is_param", False) else text


class _Tracing(threading.local):
    mode: FakeTensorMode | None = None  # of what is being compiled


TRACING = _Tracing()


def active_fake_mode() -> FakeTensorMode | None:
    """The innermost mode that is on, None without one."""
    modes = [m for m in LOCAL.functions if isinstance(m, FakeTensorMode)]
    return modes[-1] if modes else None


def detect_fake_mode(inputs: object = None) -> FakeTensorMode | None:
    """The mode of what is being compiled, the one that is on, or that of the inputs."""
    fakes = _fakes(inputs)
    return TRACING.mode or active_fake_mode() or (fakes[0].fake_mode if fakes else None)


@contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """Inside, no mode of fake tensors is on."""
    before, active = LOCAL.functions, active_fake_mode()
    LOCAL.functions = tuple(m for m in before if not isinstance(m, FakeTensorMode))
    try:
        yield active
    finally:
        LOCAL.functions = before


def is_fake(x: object) -> bool:
    """Whether a tensor is fake."""
    return isinstance(x, FakeTensor)
