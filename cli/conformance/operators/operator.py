"""Owns ACLNN operators as subjects: a header's signature joined with what says its formula."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from aclnn_bindings.install.products import Support, dtypes_of, product_of, support
from aclnn_bindings.interface.signature import Declarations, Direction, Kind, OpSignature, Param
from mindtorch.ops import Op
from mindtorch.ops.samples import Sample

from ...judge.classes import Requirement
from ...judge.precision import Array, name_of, numpy_dtype
from ...spec.declaration import Declaration
from ...spec.errors import DeclarationError
from ..cases.case import ACL_DTYPES, DTYPES
from ..cases.claims import Claims, source_of
from ..cases.inputs import main_dtype, tensors_of
from ..cases.recipe import Recipe, Slot
from ..run.custom_reference import expect, is_custom
from ..run.reference import Golden, LazySequence, ReferenceRefusesError, lifted
from ..run.subject import Law
from .kit_specs import kit_spec
from .laws import LAWS
from .placing import ResultSlot
from .row import MISSING, Spec

_NULLABLE: Final = frozenset((
    Kind.TENSOR, Kind.TENSOR_LIST, Kind.SCALAR, Kind.SCALAR_LIST, Kind.INT_ARRAY,
    Kind.BOOL_ARRAY, Kind.FLOAT_ARRAY, Kind.STRING,
))  # fmt: skip
# Names of aclDataType's numbers, for results whose dtype a parameter such as `dstType` says.
_CODES: Final = {0: "float32", 1: "float16", 2: "int8", 3: "int32", 4: "uint8", 27: "bfloat16",
                 29: "int4", 35: "float8_e5m2", 36: "float8_e4m3fn",
                 40: "float4_e2m1fn"}  # fmt: skip
_VERSION: Final = re.compile(r"V\d+$")


class Operator:
    """One ACLNN operator whose formula a spec row states."""

    differentiable = False
    shares_row = ""
    declaration: Declaration | None = None
    op: Op | None = None

    def __init__(self, signature: OpSignature, row: Spec) -> None:
        self.signature, self.spec, self.name = signature, row, signature.name
        self.family, self.tolerance = row.family, row.tolerance
        self.calls: tuple[str, ...] = (self.name,)
        self.fixed_layout, self.fixed_shape = row.fixed_layout, True
        self.known, self.specials = row.parameters(), row.specials
        self.forms: tuple[str, ...] = () if row.fixed_layout else ("out",)
        self.elsewhere, self.sparse, self.draws = False, row.sparse, row.draws
        self.steps, self.open_results = row.steps, row.nearest is not None

    def samples(self) -> list[Sample]:
        return list(self.spec.samples())

    def customize(self, slots: Sequence[Slot]) -> list[Array] | None:
        """The input arrays as a TestSpec of the reference changes them; None without one."""
        spec = kit_spec(self.spec.reference)
        if spec is None or spec.customize is None:
            return None
        arrays = spec.changed([slot.array for slot in slots])
        for slot, array in zip(slots, arrays, strict=True):
            if array.shape != slot.array.shape or array.dtype != slot.array.dtype:
                raise DeclarationError(f"{self.name}: customize_inputs must keep shapes and "
                                       f"dtypes: {name_of(slot.array)}{list(slot.array.shape)} "
                                       f"became {name_of(array)}{list(array.shape)}")  # fmt: skip
        return arrays

    def requirement(self, dtype: str) -> Requirement:  # noqa: ARG002 - rows of torch need it
        return self.spec.requirement()

    def laws(self) -> Mapping[str, Law]:
        return LAWS

    def format(self, param: str) -> str:
        """The aclFormat of a tensor parameter; "" goes by rank."""
        formats = self.spec.formats
        return formats.get(f"{self.name} {param}") or formats.get(param, "")

    def layout(self, param: str) -> str:  # noqa: ARG002 - rows of case files state it
        """The layout of a result; "" goes by the case."""
        return ""

    def claims(self, declarations: Declarations, soc: str) -> Claims:  # noqa: ARG002 - the signature is held
        """Dtypes of the main tensor: documents of the product, else header, else the samples."""
        documented = support(self.name, product_of(soc))
        self.elsewhere = documented is not None and documented.on(product_of(soc)) is False
        source = source_of(documented)
        return Claims(self._claimed(product_of(soc)), self._listed(documented), source)

    def _claimed(self, product: str | None) -> tuple[str, ...]:
        samples = [s for s in self.samples() if not s.error]
        if not samples:
            return ()
        main = main_dtype(tensors_of(samples[0]))
        for param in self.signature.params:
            value = samples[0].kwargs.get(self._row_name(param.name))
            first = value[0] if isinstance(value, list) and value else value
            if getattr(first, "dtype", "") != main or not main:
                continue
            names = dtypes_of(self.name, param.name, product, param.dtypes)
            dtypes = {ACL_DTYPES[n] for n in names if n in ACL_DTYPES}
            if dtypes:
                return tuple(d for d in DTYPES if d in dtypes)
            break
        return self._stated(samples)

    def _stated(self, samples: Sequence[Sample]) -> tuple[str, ...]:
        """Dtypes of the main tensor where neither header nor documents name any."""
        text = {main_dtype(tensors_of(s)) for s in samples if tensors_of(s)}
        return tuple(d for d in DTYPES if d in text)

    def _listed(self, documented: Support | None) -> Any:
        tensors = [p for p in self.signature.params if p.kind is Kind.TENSOR]
        lists = any(p.kind is Kind.TENSOR_LIST for p in self.signature.params)

        def listed(name: str) -> tuple[tuple[str, ...], ...] | None:
            if name != self.name or documented is None or lists:
                return None
            return tuple(documented.dtypes.get(p.name, ()) for p in tensors)

        return listed

    def _row_name(self, param: str) -> str:
        return self.spec.renamed.get(param, param)

    def values(self, recipe: Recipe, golden: Golden) -> dict[str, Any]:
        """What each header parameter gets: a Slot, a list of them, a ResultSlot, a plain value."""
        outs = list(self.spec.outs)
        values: dict[str, Any] = {}
        inputs = recipe.kwargs
        for param in self.signature.params:
            name = self._row_name(param.name)
            if name in outs:
                group = golden.groups[outs.index(name)]
                values[param.name] = _write_domain(group, inputs.get(name), golden)
            else:
                values[param.name] = self._input(param, name, inputs)
        return values

    def _input(self, param: Param, name: str, inputs: Mapping[str, Any]) -> Any:
        value = inputs.get(name, self.known.get(name, MISSING))
        if value is MISSING or value is None:
            may = param.direction is not Direction.INOUT or param.optional
            if param.kind in _NULLABLE and may:
                return None
            raise DeclarationError(f"{self.name}: no call gives {param.name}, and null is no value "
                                   f"for a {param.kind.value}")  # fmt: skip
        return value

    def golden(self, recipe: Recipe, need: Requirement) -> Golden:
        """The row's reference on the case's inputs, with a scale where the rule wants one."""
        with np.errstate(all="ignore"):
            outputs = self._reference(recipe, lambda a: a)
        values: list[Any] = []
        native: list[Any] = []
        groups: list[Any] = []
        for value, name in zip(outputs, self.spec.outs, strict=True):
            dtype = self._dtype(self._rule(name, recipe), recipe)
            many = value if isinstance(value, list) else [value]
            if is_custom(self.spec.reference):
                expect(name, many, recipe.kwargs.get(f"{name}.shape"), dtype, self.spec.steps)
            places = tuple(range(len(values), len(values) + len(many)))
            groups.append(places if isinstance(value, list) else places[0])
            values += many
            native += [None if v is None else _native(v, dtype, self.spec.steps) for v in many]
        exact = [v if n is None or self._real(v, n) else lifted(n)
                 for v, n in zip(values, native, strict=True)]  # fmt: skip
        scale = LazySequence(len(native), lambda: self._scale(recipe, need) or [None] * len(native))
        return Golden(native, exact, scale, tuple(groups))

    def _real(self, value: Array, native: Array) -> bool:
        """Whether a result is compared with the reference before it was rounded to `native`."""
        return value.dtype.kind in "fc" and (self.spec.steps or native.dtype.kind not in "iub")

    def _reference(self, recipe: Recipe, change: Callable[[Any], Any]) -> list[Any]:
        arguments, inputs = {}, recipe.kwargs
        for name, default in self.known.items():
            value = inputs.get(name, default)
            if value is MISSING:
                value = None
            arguments[self._python(name)] = _host(value, change)
        try:
            returned = self.spec.reference(**arguments)
        except ReferenceRefusesError:
            raise
        except Exception as error:
            raise ReferenceRefusesError(error) from error
        returned = returned if isinstance(returned, tuple) else (returned,)
        if len(returned) != len(self.spec.outs):
            raise DeclarationError(
                f"{self.name}: the reference gives {len(returned)} results, the row names"
                f" {len(self.spec.outs)}"
            )
        return [_array(v) for v in returned]

    def _python(self, name: str) -> str:
        import keyword

        return name + "_" if keyword.iskeyword(name) else name

    def _rule(self, result: str, recipe: Recipe) -> str:  # noqa: ARG002 - modes of declared rows
        return self.spec.outs[result]

    def _dtype(self, rule: str, recipe: Recipe) -> str:
        name, _, otherwise = rule.partition("|")
        value = recipe.kwargs.get(name)
        if value is None and otherwise:
            return self._dtype(otherwise, recipe)
        if isinstance(value, list):
            value = value[0]
        if isinstance(value, Slot):
            return str(name_of(value.array))
        if isinstance(value, str):
            return value
        return _CODES[value] if isinstance(value, int) else rule

    def _scale(self, recipe: Recipe, need: Requirement) -> list[Any] | None:
        if need.magnitude != "self" or "ratio" not in need.tier:
            return None
        scales: list[Any] = []
        for value in self._reference(recipe, np.abs):
            scales += value if isinstance(value, list) else [value]
        return [None if v is None else np.abs(v) for v in scales]

    def settle(self, golden: Golden, got: Sequence[Any]) -> Golden:
        """The reference that `got` is compared with: of quantised results the step that came,
        where it is as near to the real value as rounding allows; of several right answers the one
        that `got` is."""
        if self.spec.nearest is not None:
            return Golden(golden.native, self.spec.nearest(golden.values, got), golden.scale)
        if not self.spec.steps:
            return golden
        results = zip(golden.native, golden.values, got, strict=True)
        values = [_step(n, v, g, self.spec.slack) for n, v, g in results]
        return Golden(golden.native, values, golden.scale)


# Results that are all multiples of its inverse were exact before they were rounded.
_DYADIC: Final = 4


def _step(native: Array, value: Array, got: Array, slack: float) -> Array:
    """Steps of an integer or 8-bit float result whose reference is real."""
    whole = _whole(native.dtype)
    coarse = whole or name_of(native).startswith(("float8", "float4"))
    if not coarse or value.dtype.kind != "f" or got.shape != value.shape:
        return value
    near, have = native.astype(np.float64), got.astype(np.float64)
    if whole:
        fits = np.abs(have - clipped(value, native.dtype)) <= 0.5 + slack
        if np.array_equal(value * _DYADIC, np.rint(value * _DYADIC)):
            # No step of the arithmetic rounds these: a tie is one, and goes to the even step.
            fits &= have == near
    else:
        fits = np.abs(have - value) <= np.abs(near - value) * (1 + slack)
    return np.where(fits, have, near).astype(native.dtype)


def clipped(value: Array, dtype: np.dtype[Any]) -> Array:
    """Real values within the range of an integer dtype."""
    if dtype == np.bool_:
        return np.clip(value, 0, 1)
    bounds = (-8, 7) if dtype.name == "int4" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return np.clip(value, *bounds)


def _finite(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The least and the largest number of an 8-bit float."""
    numbers = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    return float(finite.min()), float(finite.max())


def _whole(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iub" or dtype.name == "int4"


def _write_domain(group: Any, before: Any, golden: Golden) -> Any:
    if isinstance(group, tuple):
        befores = before if isinstance(before, list) else [None] * len(group)
        return [_write_domain(k, b, golden) for k, b in zip(group, befores, strict=True)]
    if golden.native[group] is None:
        return None
    return ResultSlot(group, before if isinstance(before, Slot) else None)


def _array(value: Any) -> Any:
    if isinstance(value, list):
        return [_array(v) for v in value]
    return None if value is None else np.asarray(value)


def _native(value: Array, dtype: str, steps: bool) -> Array:
    kind = numpy_dtype(dtype)
    with np.errstate(all="ignore"):
        if steps and _whole(kind) and kind != np.bool_ and value.dtype.kind == "f":
            return clipped(np.rint(value), kind).astype(kind)
        if steps and kind.name.startswith("float8_e") and kind.name != "float8_e8m0fnu":
            # Saturating, as torch converts: NaN is no step.
            value = np.where(np.isinf(value), value, np.clip(value, *_finite(kind)))
        return value.astype(kind)


def _host(value: Any, change: Callable[[Any], Any]) -> Any:
    """Slots as arrays for a reference: floats in float64, complex in complex128."""
    if isinstance(value, Slot):
        array = lifted(value.array)
        if array.dtype.kind == "V" or name_of(array).startswith("float8"):
            array = array.astype(np.float64)
        return change(array) if array.dtype.kind in "fc" else array
    if isinstance(value, list):
        return [_host(v, change) for v in value]
    # A weight of -1 takes nothing away from a sum of magnitudes.
    return change(value) if isinstance(value, float) else value
