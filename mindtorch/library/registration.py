"""Owns opcheck: tests whether an operator does what its registration says (torch.library.opcheck).

torch's tests by its names; torch's fake tensors are tensors on meta here. Its AOT tests trace the
operator: here its fake and its derivative run on meta, and its functional form (writes on copies,
written back afterwards) is compared with the plain call. Source: torch 2.13 library documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any, TypeAlias

import mindtorch
from mindtorch.testing import assert_close

from .._autograd.grad_mode import no_grad
from .._dispatch.functionalize import functionalize
from .._dispatch.keys import DispatchKey, ExcludeDispatchKeyGuard
from .._dispatch.new_sizes import SizeOfValues, new_sizes, with_sizes
from .._tensor.device import device as Device
from .._tensor.tensor import Tensor
from ..ops.namespaces import OpOverload, OpOverloadPacket
from ..ops.schema import Return, Schema, SchemaArgument, parse
from ..ops.spec import OPS
from ..utils import _pytree as pytree
from .custom import _DEFINITIONS, CustomOpDef, without_gradient
from .symbols import unknown_numbers

_CLONE = (
    "The alias annotation specifies that the output Tensor shares storage with an input that has "
    "the same annotation. Add a .clone() before returning it and delete the annotation."
)
_OUTPUTS = (
    "Outputs of the operator are different in eager-mode PyTorch vs AOTDispatcher tracing. This "
    "means the operator will have incorrect output underneath torch.compile. This could be because "
    "the operator's implementation not traceable."
)
_GRADIENTS = (
    "Gradients of the operator are different in eager-mode PyTorch vs AOTDispatcher. This means the"
    " operator will have incorrect gradients underneath torch.compile. This could be because the "
    "operator's backward is incorrectly registered or not traceable."
)


Positional: TypeAlias = Sequence[object]
Named: TypeAlias = Mapping[str, object]
Equal: TypeAlias = Callable[[object, object], None]


class OpCheckError(Exception):
    """A test of opcheck that failed; its cause is the exception of the test."""


class UnsupportedOperatorException(RuntimeError):
    """An operator that has no fake and no kernel for the meta device."""


class MetadataMismatchError(RuntimeError):
    """A fake whose results have another shape, dtype, device or memory than the operator's."""


class _Operator:
    """An operator under test: how it is called, and what its schema says."""

    def __init__(self, overload: OpOverload):
        self.overload = overload
        self.definition = None if overload.namespace == "aten" else _definition(overload)
        self.schema = self._schema()

    def _schema(self) -> Schema | None:
        if self.definition is not None:
            return parse(self.definition._name + self.definition._schema)
        base = self.overload.overloadpacket.__name__
        row = OPS.get(f"{base}.{self.overload._overloadname}") or OPS.get(base)
        return None if row is None else row.schema

    def __str__(self) -> str:
        return str(self.overload)

    def __call__(self, args: Positional, kwargs: Named) -> Any:
        return self.overload(*args, **kwargs)

    def on_meta(self, args: Positional, kwargs: Named) -> Any:
        """Run the fake; UnsupportedOperatorException where the operator has none."""
        if (definition := self.definition) is not None and not definition._from_function:
            kernels = definition._kernels
            if definition._fake is None and not {"meta", None} & kernels.keys():
                raise UnsupportedOperatorException(str(self))
        with Device("meta"):
            try:
                return self(args, kwargs)
            except SizeOfValues:  # of which any will do
                return with_sizes(lambda: self(args, kwargs), repeat(2))

    def functional(self, args: Positional, kwargs: Named) -> Any:
        """Run on copies of what the operator writes, then write them back."""
        definition = self.definition
        if self.schema is None or definition is None:
            return self(args, kwargs)
        self._refuse_views()
        values = self.arguments(args, kwargs)
        copies = {
            arg.name: pytree.tree_map_only(Tensor, mindtorch.clone, values[arg.name])
            for arg in self.schema.args
            if arg.writes and arg.name in values
        }
        places = [copies.get(a.name, v) for a, v in zip(self.schema.args, args, strict=False)]
        names = {name: copies.get(name, value) for name, value in kwargs.items()}
        with functionalize():
            result = self._without_kernel_gradient(places, names)
        for name, copy in copies.items():
            for old, new in zip(_tensors(values[name]), _tensors(copy), strict=True):
                old.copy_(new)
        return result

    def _refuse_views(self) -> None:
        assert self.schema is not None
        assert self.definition is not None
        if any(result.alias for result in self.schema.returns):
            raise RuntimeError(
                "Found a custom (non-ATen) operator whose output has alias annotations: "
                f"{self.definition._qualname}{self.definition._schema}. We only support "
                f"functionalizing operators whose outputs do not have alias annotations. {_CLONE}"
            )

    def _without_kernel_gradient(self, args: Positional, kwargs: Named) -> Any:
        """A trace sees the operator alone: what its kernel records for gradients is lost."""
        definition = self.definition
        if definition is None or definition.has_autograd:
            return self(args, kwargs)
        with no_grad(), ExcludeDispatchKeyGuard(DispatchKey.Autograd):
            result = self(args, kwargs)
        return without_gradient(definition, args, result)

    def arguments(self, args: Positional, kwargs: Named) -> dict[str, Any]:
        """The values of a call by the schema's names."""
        assert self.schema is not None
        return dict(zip((arg.name for arg in self.schema.args), args, strict=False)) | dict(kwargs)


def _definition(overload: OpOverload) -> CustomOpDef:
    name = overload.name()
    return _DEFINITIONS.get(name) or _DEFINITIONS[name.removesuffix(".default")]


def _tensors(values: object) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, Tensor)]


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _as_meta(tensor: Tensor) -> Tensor:
    meta = mindtorch.empty_strided(
        tensor.size(), tensor.stride(), dtype=tensor.dtype, device="meta"
    )
    return meta.requires_grad_(tensor.requires_grad)


def _copies(values: Any) -> Any:
    return pytree.tree_map_only(Tensor, _copy, values)


def _check_schema(op: _Operator, args: Positional, kwargs: Named) -> None:
    """Writes, aliases of inputs and of each other are those that the schema declares."""
    args, kwargs = _copies((args, kwargs))
    before = _copies((args, kwargs))
    strides = [t.stride() for t in _tensors((args, kwargs))]
    with ExcludeDispatchKeyGuard(DispatchKey.Autograd):
        result = op(args, kwargs)
    if op.schema is None or (op.definition is not None and op.definition._composite):
        return
    results = result if isinstance(result, tuple) else (result,)
    old, new = op.arguments(*before), op.arguments(args, kwargs)
    position = 0
    for arg in op.schema.args:
        name = arg.name if arg.name != "self" else "input"
        tensors = _tensors(new.get(arg.name))
        _check_aliases(op.schema, arg, name, tensors, results)
        marks = strides[position : position + len(tensors)]
        position += len(tensors)
        pairs = zip(_tensors(old.get(arg.name)), tensors, marks, strict=True)
        if not arg.writes and any(_differ(was, now) or now.stride() != s for was, now, s in pairs):
            raise RuntimeError(f"Argument {name} is not defined as mutable but was mutated")
    _check_results(op.schema, results)


def _differ(old: Tensor, new: Tensor) -> bool:
    if old.shape != new.shape:
        return True
    if old.is_floating_point() or old.is_complex():
        return not mindtorch.allclose(old, new, equal_nan=True)
    return not mindtorch.equal(old, new)


def _share(left: object, right: object) -> bool:
    storages = {id(t._storage) for t in _tensors(left)}
    return any(id(t._storage) in storages for t in _tensors(right))


def _declares(mark: SchemaArgument | Return, other: Return) -> bool:
    return bool(mark.alias) and mark.alias == other.alias


def _check_aliases(
    schema: Schema, arg: SchemaArgument, name: str, tensors: Sequence[Tensor], results: Positional
) -> None:
    for index, (result, declared) in enumerate(zip(results, schema.returns, strict=False)):
        if _share(result, tensors) and not _declares(arg, declared):
            raise RuntimeError(f"Argument {name} is not defined to alias output but was aliasing")
        if any(result is tensor for tensor in tensors) and not arg.writes:
            raise RuntimeError(
                "Dispatcher operators below autograd are not allowed to directly return inputs.\n"
                f"However, we found that `outputs[{index}] is {name}"
            )


def _check_results(schema: Schema, results: Positional) -> None:
    for j, later in enumerate(results[: len(schema.returns)]):
        for i, earlier in enumerate(results[:j]):
            if _share(earlier, later) and not _declares(schema.returns[i], schema.returns[j]):
                raise RuntimeError(f"Outputs {i} and {j} alias unexpectedly")


def _check_autograd_registration(op: _Operator, args: Positional, kwargs: Named) -> None:
    """Results need a gradient only where a derivative is registered for autograd."""
    args, kwargs = _copies((args, kwargs))
    inputs = _tensors((args, kwargs))
    if not any(tensor.requires_grad for tensor in inputs):
        return
    definition = op.definition
    if definition is None or definition.has_autograd:
        return
    results = _tensors(definition._plain(args, kwargs))
    if any(t.requires_grad and all(t is not other for other in inputs) for t in results):
        raise AssertionError(
            f"{op.overload.name()}: at least one output of this operator has requires_grad=True "
            "but the operator does not have an autograd kernel defined at an autograd key (e.g. "
            "DispatchKey::Autograd). This could mean that you have incorrectly registered an "
            "autograd kernel to a non-Autograd DispatchKey, which may lead to silently incorrect "
            "results. If your operator consists of regular PyTorch operations, consider not using "
            "an operator at all or registering your operator as CompositeImplicitAutograd. If you "
            "have an autograd.Function registered to a backend (CPU/CUDA/XPU) key, the correct "
            "location for it is the Autograd key."
        )


def _check_faketensor(op: _Operator, args: Positional, kwargs: Named) -> None:
    """The fake gives results of the operator's shapes, dtypes, strides and aliases."""
    args, kwargs = _copies((args, kwargs))
    if op.definition is None or op.definition._composite:
        op(args, kwargs)
        return
    metas = pytree.tree_map_only(Tensor, _as_meta, (args, kwargs))
    with ExcludeDispatchKeyGuard(DispatchKey.Autograd):
        real = op(args, kwargs)
        sizes = new_sizes(lambda: op.on_meta(*metas), real)
        fake = with_sizes(lambda: op.on_meta(*metas), [size.value for size in sizes])
    if fake is not None:
        _compare_fake(op, (real, (args, kwargs)), (fake, metas))


def _aliases(results: object, inputs: object) -> dict[str, bool]:
    tensors = _tensors(inputs)
    leaves = _tensors(results)
    return {
        "outputs_alias_inputs": _share(results, inputs),
        "outputs_are_inputs": any(leaf is tensor for leaf in leaves for tensor in tensors),
        "outputs_alias_each_other": len({id(t._storage) for t in leaves}) < len(leaves),
    }


def _compare_fake(op: _Operator, real: tuple[object, object], fake: tuple[object, object]) -> None:
    context = f"When comparing the output of {op} on FakeTensor and concrete Tensors, found"
    leaves, fakes = pytree.tree_leaves(real[0]), pytree.tree_leaves(fake[0])
    if len(leaves) != len(fakes):
        raise AssertionError(
            f"{context} mismatch in number of returns {len(fakes)} != {len(leaves)}"
        )
    expected, actual = _aliases(*real), _aliases(*fake)
    for question in expected:
        if expected[question] != actual[question]:
            raise MetadataMismatchError(
                f"{context} mismatch in {question} check {actual[question]} != {expected[question]}"
            )
    for index, (result, meta) in enumerate(zip(leaves, fakes, strict=True)):
        if isinstance(result, Tensor) != isinstance(meta, Tensor):
            raise AssertionError(f"{context} mismatched number of tensor outputs")
        difference = _difference(result, meta) if isinstance(result, Tensor) else ""
        if difference:
            place = "" if len(leaves) == 1 else f" for output[{index}]"
            raise MetadataMismatchError(
                f"{context} mismatched tensor metadata{place}: {difference}"
            )


def _difference(real: Tensor, fake: Tensor) -> str:
    """How the metadata of a fake result differ; empty where they do not."""
    if real.requires_grad != fake.requires_grad:
        return (
            " mismatched requires_grad-ness of outputs. This usually means that you have added "
            "autograd support for your operator at a dispatch key other than Autograd, which will "
            "lead to problems"
        )
    if real.shape != fake.shape:
        return f"Shapes {real.shape} and {fake.shape} are not equal!"
    if real.dtype != fake.dtype:
        return f"Dtypes {real.dtype} and {fake.dtype} are not equal!"
    if fake.device.type not in ("meta", real.device.type):
        return f"Devices {real.device} and {fake.device} are not equal!"
    pairs = zip(real.shape, real.stride(), fake.stride(), strict=True)
    unequal = [i for i, (size, mine, other) in enumerate(pairs) if size > 1 and mine != other]
    if unequal and real.numel():
        return (
            f"Stride mismatch! Strides are {real.stride()} and {fake.stride()} "
            f"(mismatched at {unequal[0]})!"
        )
    if real.storage_offset() != fake.storage_offset():
        return "mismatched storage offset"
    return ""


Call = Callable[[Any, Any], Any]


def _run(call: Call, args: Positional, kwargs: Named) -> Any:
    """Call on clones, from a fixed seed: no call sees the writes of another one."""
    mindtorch.manual_seed(42)
    return call(*pytree.tree_map_only(Tensor, mindtorch.clone, (args, kwargs)))


def _with_gradients(
    call: Call, args: Positional, kwargs: Named
) -> tuple[Any, tuple[Tensor | None, ...]]:
    result = _run(call, args, kwargs)
    total = sum(leaf.sum().abs() for leaf in _tensors(result))
    if not isinstance(total, Tensor):
        raise AssertionError(f"Expected sm to be a Tensor, got {type(total)}")
    inputs = [t for t in _tensors((args, kwargs)) if t.requires_grad]
    return result, mindtorch.autograd.grad(total, inputs, allow_unused=True)


def _check_aot_dispatch(op: _Operator, args: Positional, kwargs: Named, *, equal: Equal) -> None:
    """Fake and derivative run without data; functional results and gradients are the plain ones."""
    metas = pytree.tree_map_only(Tensor, _as_meta, (args, kwargs))
    result = _run(op, args, kwargs)
    trained = [t.requires_grad for t in _tensors((args, kwargs))]
    if not (any(trained) and any(t.requires_grad for t in _tensors(result))):
        traced = _run(op.on_meta, *metas)
        functional = _run(op.functional, args, kwargs)
    else:
        result, gradients = _with_gradients(op, args, kwargs)
        traced, _ = _with_gradients(op.on_meta, *metas)
        functional, functional_gradients = _with_gradients(op.functional, args, kwargs)
        _expect(equal, functional_gradients, gradients, _GRADIENTS)
    if len(_tensors(traced)) != len(_tensors(result)):
        raise AssertionError(_OUTPUTS)
    _expect(equal, functional, result, _OUTPUTS)


def _check_aot_dispatch_dynamic(
    op: _Operator, args: Positional, kwargs: Named, *, equal: Equal
) -> None:
    """The same, where a float that is read from a tensor without data is an unknown number."""
    with unknown_numbers():
        _check_aot_dispatch(op, args, kwargs, equal=equal)


def _expect(equal: Equal, actual: object, expected: object, message: str) -> None:
    if actual is None and expected is None:
        return
    try:
        equal(actual, expected)
    except Exception as error:
        raise AssertionError(message) from error


def _check_device(op: _Operator, args: Positional, kwargs: Named, *, equal: Equal) -> None:
    """Results on the device of the inputs are those of the operator's cpu kernel."""
    args, kwargs = pytree.tree_map_only(Tensor, Tensor.detach, _copies((args, kwargs)))
    if all(t.device.type == "cpu" for t in _tensors((args, kwargs))):
        raise RuntimeError("test_device_reference: no input lies on a device other than cpu")
    reference = pytree.tree_map_only(Tensor, Tensor.cpu, (args, kwargs))
    result, expected = op(args, kwargs), op(*reference)
    host = pytree.tree_map_only(Tensor, Tensor.cpu, (result, args, kwargs))
    _expect(equal, host, (expected, *reference), f"{op}: the device's results are not those of cpu")


# torch's tests in its order; the names are torch's.
_TESTS: dict[str, Callable[..., None]] = {
    "test_schema": _check_schema,
    "test_autograd_registration": _check_autograd_registration,
    "test_faketensor": _check_faketensor,
    "test_aot_dispatch_static": _check_aot_dispatch,
    "test_aot_dispatch_dynamic": _check_aot_dispatch_dynamic,
}
_COMPARING = ("test_aot_dispatch_static", "test_aot_dispatch_dynamic", "test_device_reference")
_ALL = {**_TESTS, "test_device_reference": _check_device}
_DEFAULT = tuple(name for name in _TESTS if name != "test_aot_dispatch_static")


def _unique_overload(packet: OpOverloadPacket) -> OpOverload:
    names = packet.overloads()
    if packet.namespace == "aten":
        names = [*names, "out"]
    if len(names) != 1:
        raise RuntimeError(
            "opcheck can only test operators without overloads. Got the following overloads for "
            f"{packet.namespace}::{packet.__name__}: {['' if n == 'default' else n for n in names]}"
        )
    overload: OpOverload = getattr(packet, names[0])
    return overload


def _overload(op: object) -> OpOverload:
    if isinstance(op, CustomOpDef):
        op = op._opoverload
    if isinstance(op, OpOverloadPacket):
        op = _unique_overload(op)
    if not isinstance(op, OpOverload):
        raise ValueError(
            "opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. "
            f"torch.ops.aten.sin.default, got {type(op)}"
        )
    return op


def _tests(test_utils: str | Sequence[str]) -> tuple[str, ...]:
    if test_utils == "ALL":
        return tuple(_TESTS)
    names = (test_utils,) if isinstance(test_utils, str) else test_utils
    if not isinstance(names, tuple | list) or not set(names) <= _ALL.keys():
        raise ValueError(
            f"opcheck(op, ..., test_utils={names}), expected test_utils to be subset of "
            f"{tuple(_ALL)} but it was not"
        )
    return tuple(names)


def opcheck(
    op: OpOverload | OpOverloadPacket | CustomOpDef,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = _DEFAULT,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Test an operator's registration: test → "SUCCESS", or with raise_exception=False the error.

    OpCheckError for the first test that fails. `test_device_reference` is this library's own test
    and runs where it is named: results on the inputs' device against the operator's cpu kernel.
    """
    if (rtol is None) != (atol is None):
        raise ValueError("opcheck(op, ...): if you specify one of rtol/atol, you must specify both")
    operator, names = _Operator(_overload(op)), _tests(test_utils)
    equal = partial(assert_close, rtol=rtol, atol=atol)
    on_meta = any(t.device.type == "meta" for t in _tensors((args, kwargs)))
    verdicts: dict[str, Any] = {}
    for name in names:
        extra = {"equal": equal} if name in _COMPARING else {}
        try:
            if not on_meta:
                _ALL[name](operator, args, kwargs or {}, **extra)
            verdicts[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            verdicts[name] = error
    return verdicts
