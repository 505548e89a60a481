"""Owns random parameters and the tensors pairs of them, for measurements over many sizes.

Draws follow torch's: one seed gives the same parameters, shapes, strides and values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import mindtorch

from ..._tensor.dtype import dtype as Dtype
from ..._tensor.tensor import Tensor

T = TypeVar("T")
Parameters = dict[Any, Any]


class ParameterAlias:
    """A value that is that of another parameter."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A random number: `uniform` or `loguniform` between `minval` and `maxval`, or of a dict of
    values and their probabilities; a `strict` one is drawn once and not again for a rejected draw.

    AssertionError for other distributions. As in torch, dicts whose probabilities sum to one are
    refused: its check is the wrong way round.
    """

    def __init__(
        self, name: str, minval: float | None = None, maxval: float | None = None,
        distribution: str | dict[Any, float] | None = None, strict: bool = False,
    ) -> None:  # fmt: skip
        if not isinstance(distribution, dict):
            if distribution not in ("loguniform", "uniform"):
                raise AssertionError(f"Unknown distribution: {distribution}")
        elif any(p < 0 for p in distribution.values()):
            raise AssertionError("Probabilities cannot be negative")
        elif abs(sum(distribution.values()) - 1) <= 1e-5:
            raise AssertionError("Distribution is not normalized")
        elif minval is not None or maxval is not None:
            bound = "maxval" if minval is None else "minval"
            raise AssertionError(f"When passing a custom distribution, '{bound}' must be None")
        self._name, self._minval, self._maxval = name, minval, maxval
        self._distribution, self.strict = distribution, strict

    @property
    def name(self) -> str:
        """What tensors call it."""
        return self._name

    def sample(self, state: Any) -> Any:
        """A value by the random numbers of a numpy RandomState."""
        low, high = self._minval, self._maxval
        if isinstance(self._distribution, dict):
            values = list(self._distribution)
            return values[state.choice(len(values), p=tuple(self._distribution.values()))]
        if self._distribution == "loguniform":
            number: float = int(2 ** state.uniform(
                low=None if low is None else math.log2(low),
                high=None if high is None else math.log2(high),
            ))  # fmt: skip
            number = number if low is None or number >= low else low
            return number if high is None or number <= high else high
        if isinstance(low, int) and isinstance(high, int):
            return int(state.randint(low=low, high=high + 1))
        return state.uniform(low=low, high=high)


class FuzzedTensor:
    """A tensor whose sizes and steps are numbers or names of parameters; with a probability, its
    dimensions are stored in another order."""

    def __init__(
        self, name: str, size: tuple[str | int, ...], steps: tuple[str | int, ...] | None = None,
        probability_contiguous: float = 0.5, min_elements: int | None = None,
        max_elements: int | None = None, max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None, roll_parameter: str | None = None,
        dtype: Dtype = mindtorch.float32, cuda: bool = False,
        tensor_constructor: Callable[..., Tensor] | None = None,
    ) -> None:  # fmt: skip
        self._name, self._size, self._steps = name, size, steps
        self._probability_contiguous = probability_contiguous
        self._min_elements, self._max_elements = min_elements, max_elements
        self._max_allocation_bytes = max_allocation_bytes
        self._dim_parameter, self._dtype, self._cuda = dim_parameter, dtype, cuda
        self._tensor_constructor = tensor_constructor

    @property
    def name(self) -> str:
        """Its key in what `Fuzzer.take` gives."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size: Sequence[int], dtype: Dtype, **_: Any) -> Tensor:
        """Floats in [0, 1), integers from 1 to 126."""
        if dtype.is_floating_point or dtype.is_complex:
            return mindtorch.rand(size=size, dtype=dtype, device="cpu")
        return mindtorch.randint(1, 127, size=size, dtype=dtype, device="cpu")

    def _make_tensor(self, params: Parameters, state: Any) -> tuple[Tensor, dict[str, Any]]:
        import numpy as np

        size, steps, allocated = self._get_size_and_steps(params)
        make = self._tensor_constructor or self.default_tensor_constructor
        raw = make(size=allocated, dtype=self._dtype, **params)
        raw = raw.cuda() if self._cuda else raw
        unmoved = order = np.arange(len(size))
        if state.rand() > self._probability_contiguous:
            while len(size) > 1 and np.all(order == unmoved):
                order = state.permutation(raw.dim())
            raw = raw.permute(*order.tolist()).contiguous()
            raw = raw.permute(*np.argsort(order).tolist())
        tensor = raw[tuple(slice(0, n * s, s) for n, s in zip(size, steps, strict=True))]
        return tensor, {
            "numel": int(tensor.numel()),
            "order": order,
            "steps": steps,
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }

    def _get_size_and_steps(
        self, params: Parameters
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        dim = len(self._size) if self._dim_parameter is None else params[self._dim_parameter]

        def resolved(values: tuple[str | int, ...]) -> tuple[int, ...]:
            numbers: tuple[Any, ...] = tuple(params.get(v, v) for v in values)
            return (numbers + (1,) * dim)[:dim]

        size, steps = resolved(self._size), resolved(self._steps or ())
        if len(self._size) > dim:
            size = size[:dim]
        return size, steps, tuple(n * s for n, s in zip(size, steps, strict=True))

    def satisfies_constraints(self, params: Parameters) -> bool:
        """Whether it has as many elements and bytes as are asked for."""
        size, _, allocated = self._get_size_and_steps(params)
        count = math.prod(map(int, size))
        nbytes = math.prod(map(int, allocated)) * self._dtype.itemsize
        return not (
            (self._max_elements is not None and count > self._max_elements)
            or (self._min_elements is not None and count < self._min_elements)
            or (self._max_allocation_bytes is not None and nbytes > self._max_allocation_bytes)
        )


class FuzzedSparseTensor(FuzzedTensor):
    """A sparse tensor; `density`, `coalesced` and `sparse_dim` are parameters of these names."""

    def __init__(
        self, name: str, size: tuple[str | int, ...], min_elements: int | None = None,
        max_elements: int | None = None, dim_parameter: str | None = None,
        sparse_dim: str | None = None, nnz: str | None = None, density: str | None = None,
        coalesced: str | None = None, dtype: Dtype = mindtorch.float32, cuda: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            name, size, None, 0.5, min_elements, max_elements, None, dim_parameter, dtype=dtype,
            cuda=cuda,
        )  # fmt: skip
        self._density, self._coalesced, self._sparse_dim = density, coalesced, sparse_dim

    @staticmethod
    def sparse_tensor_constructor(
        size: Any, dtype: Dtype, sparse_dim: int, nnz: int, is_coalesced: bool
    ) -> Tensor:
        """`nnz` random values at random places, each place twice where it is not coalesced."""
        size = [size] * sparse_dim if isinstance(size, int) else list(size)
        if nnz and all(n <= 0 for n in size[:sparse_dim]):
            raise AssertionError("invalid arguments")
        shape = [nnz, *size[sparse_dim:]]
        values = FuzzedTensor.default_tensor_constructor(shape, dtype)
        indices = mindtorch.rand(sparse_dim, nnz, device="cpu")
        indices.mul_(mindtorch.tensor(size[:sparse_dim]).unsqueeze(1).to(indices))
        indices = indices.to(mindtorch.long)
        if not is_coalesced:
            values = mindtorch.cat([values, mindtorch.randn_like(values)], 0)
            indices = mindtorch.cat([indices, indices], 1)
        tensor = mindtorch.sparse_coo_tensor(indices, values, mindtorch.Size(size))
        return tensor.coalesce() if is_coalesced else tensor

    def _make_tensor(self, params: Parameters, state: Any) -> tuple[Tensor, dict[str, Any]]:
        size, _, _ = self._get_size_and_steps(params)
        density = params["density"]
        nnz = math.ceil(sum(size) * density)
        if nnz > sum(size):
            raise AssertionError("nnz cannot exceed total number of elements")
        sparse_dim = min(params["sparse_dim"] if self._sparse_dim else len(size), len(size))
        tensor = self.sparse_tensor_constructor(
            size, self._dtype, sparse_dim, nnz, params["coalesced"]
        )
        tensor = tensor.cuda() if self._cuda else tensor
        return tensor, {
            "numel": int(tensor.numel()),
            "shape": tensor.size(),
            "is_coalesced": tensor.is_coalesced(),
            "density": density,
            "sparsity": 1.0 - density,
            "sparse_dim": tensor.sparse_dim(),
            "dense_dim": tensor.dense_dim(),
            "is_hybrid": len(size) > tensor.sparse_dim(),
            "dtype": str(self._dtype),
        }


class Fuzzer:
    """Draws parameters until tensors and constraints take them; ValueError for names of both."""

    def __init__(
        self, parameters: Iterable[Any], tensors: Iterable[Any],
        constraints: Sequence[Callable[[Parameters], bool]] | None = None, seed: int | None = None,
    ) -> None:  # fmt: skip
        import numpy as np

        if seed is None:
            seed = int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64))
        self._seed = seed
        self._parameters = self._unpack(parameters, FuzzedParameter)
        self._tensors = self._unpack(tensors, FuzzedTensor)
        self._constraints = constraints or ()
        both = {p.name for p in self._parameters} & {t.name for t in self._tensors}
        if both:
            raise ValueError(f"Duplicate names in parameters and tensors: {both}")
        self._rejections = self._total_generated = 0

    @staticmethod
    def _unpack(values: Iterable[Any], kind: type[T]) -> tuple[T, ...]:
        lists = ([v] if isinstance(v, kind) else v for v in values)
        return tuple(itertools.chain.from_iterable(lists))

    def take(self, n: int) -> Iterator[tuple[dict[str, Tensor], dict[str, Any], Parameters]]:
        """`n` times (tensors, what they are like, parameters), of one seed."""
        import numpy as np

        state = np.random.RandomState(self._seed)
        mindtorch.manual_seed(int(state.randint(low=0, high=2**63, dtype=np.int64)))
        for _ in range(n):
            params = self._generate(state)
            pairs = {t.name: t._make_tensor(params, state) for t in self._tensors}
            yield (
                {name: tensor for name, (tensor, _) in pairs.items()},
                {name: about for name, (_, about) in pairs.items()},
                params,
            )

    @property
    def rejection_rate(self) -> float:
        """Which part of the draws was rejected."""
        return self._rejections / self._total_generated if self._total_generated else 0.0

    def _generate(self, state: Any) -> Parameters:
        strict: Parameters = {}
        for _ in range(1000):
            draw: Parameters = {}
            for p in self._parameters:
                draw[p.name] = strict[p.name] if p.name in strict else p.sample(state)
                if p.strict:
                    strict[p.name] = draw[p.name]
            draw = self._resolve_aliases(draw)
            self._total_generated += 1
            if all(fits(draw) for fits in self._constraints) and all(
                t.satisfies_constraints(draw) for t in self._tensors
            ):
                return draw
            self._rejections += 1
        raise ValueError("Failed to generate a set of valid parameters.")

    @staticmethod
    def _resolve_aliases(params: Parameters) -> Parameters:
        params = dict(params)

        def aliases() -> list[str]:
            return [name for name, v in params.items() if isinstance(v, ParameterAlias)]

        while left := aliases():
            for name in left:
                params[name] = params[params[name].alias_to]
            if len(aliases()) == len(left):
                raise ValueError(f"ParameterAlias cycle detected\n{params}")
        return params
