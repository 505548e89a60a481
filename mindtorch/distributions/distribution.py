"""Owns Distribution: shapes of batches and events, checks of parameters and samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar, cast, overload

import mindtorch

from .._tensor.geometry import Size
from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints

# What a parameter may be: a tensor, or a number.
Parameter: TypeAlias = Tensor | float
OwnT = TypeVar("OwnT", bound="Distribution")
_NONE = Size()


class Distribution:
    """Base of distributions: `batch_shape` is of parameters, `event_shape` of one draw."""

    _validate_args: ClassVar[bool] = __debug__
    if TYPE_CHECKING:
        arg_constraints: dict[str, constraints.Constraint]
    else:

        @property
        def arg_constraints(self) -> dict[str, constraints.Constraint]:
            """What each parameter must satisfy."""
            raise NotImplementedError

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check what they are given."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Shape = _NONE,
        event_shape: Shape = _NONE,
        validate_args: bool | None = None,
    ):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args  # type: ignore[misc]
        if self._validate_args:
            self._check_parameters()
        super().__init__()  # of a class beside this one: distributions may be modules

    def _broadcast(self, **parameters: Parameter) -> tuple[int, ...]:
        """Keep parameters, broadcast with each other; their shape, the batch's."""
        tensors = broadcast_all(*parameters.values())
        self.__dict__.update(zip(parameters, tensors, strict=True))
        numbers = all(isinstance(p, int | float) for p in parameters.values())
        return () if numbers else tuple(tensors[0].shape)

    def _constraints(self) -> dict[str, constraints.Constraint]:
        """`arg_constraints`, or none with a warning where a class has not said."""
        try:
            return self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints ="
                " {}` or initialize the distribution with `validate_args=False` to turn off"
                " validation.",
                stacklevel=4,
            )
            return {}

    def _check_parameters(self) -> None:
        """ValueError for a parameter outside its constraint."""
        for name, constraint in self._constraints().items():
            class_attribute = getattr(type(self), name, None)
            if constraints.is_dependent(constraint) or (
                name not in self.__dict__ and isinstance(class_attribute, lazy_property)
            ):
                continue
            value = getattr(self, name)
            if isinstance(value, Tensor) and not _all_hold(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape"
                    f" {tuple(value.shape)}) of distribution {self!r} to satisfy the constraint"
                    f" {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self: OwnT, batch_shape: Shape, _instance: Distribution | None = None) -> OwnT:
        """The distribution with parameters, and distributions inside it, expanded to a batch."""
        shape = Size(batch_shape)
        expanded = self._instance_for_expand(_instance)
        for name in self._expanded:
            if name in self.__dict__:
                value = getattr(self, name)
                extra = len(getattr(self, "_param_event", {}).get(name, ()))
                extra = extra or self._events_of(name)
                tail = tuple(value.shape[value.dim() - extra :]) if extra else ()
                expanded.__dict__[name] = value.expand(tuple(shape) + tail)
        for name, value in self.__dict__.items():
            part = value.expand(shape) if isinstance(value, Distribution) else value
            expanded.__dict__.setdefault(name, part)
        expanded._batch_shape = shape
        return expanded

    def _get_checked_instance(
        self: OwnT, cls: type[Distribution], _instance: Distribution | None = None
    ) -> OwnT:
        """`_instance`, or one without attributes; NotImplementedError where `cls` cannot know them.

        A subclass that has an `__init__` of its own gives an instance to the `expand` of `cls`.
        """
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__"
                " method must also define a custom .expand() method."
            )
        return cast(OwnT, type(self).__new__(type(self)) if _instance is None else _instance)

    def _instance_for_expand(self: OwnT, instance: Distribution | None) -> OwnT:
        """What the `expand` of a class of this package fills."""
        home = attrgetter("__init__.__module__")
        ours = (c for c in type(self).__mro__ if home(c).startswith(__package__))
        owner = next(ours)
        if owner is Distribution and instance is None:
            raise NotImplementedError
        return self._get_checked_instance(owner, instance)

    def _copy_for_expand(self: OwnT, instance: Distribution | None) -> OwnT:
        """The same with this distribution's attributes, where it has none of the name."""
        new = self._instance_for_expand(instance)
        new.__dict__.update({**self.__dict__, **new.__dict__})
        return new

    @property
    def _expanded(self) -> tuple[str, ...]:
        return tuple(self.arg_constraints)

    def _events_of(self, name: str) -> int:
        constraint = self.arg_constraints[name]
        return int(constraint.event_dim)

    if TYPE_CHECKING:

        @property
        def has_rsample(self) -> bool:
            """Whether `rsample` draws with gradients."""

        @property
        def has_enumerate_support(self) -> bool:
            """Whether `enumerate_support` lists all values."""
    else:
        has_rsample = has_enumerate_support = False

    @property
    def batch_shape(self) -> Size:
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        return self._event_shape

    @property
    def support(self) -> constraints.Constraint:
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Draws without gradients."""
        with mindtorch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Draws that parameters' gradients pass through."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        message = "`sample_n(n)` will be deprecated. Use `sample((n,))` instead."
        warnings.warn(message, FutureWarning, 2)
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """e to the entropy."""
        return mindtorch.exp(self.entropy())

    def _extended_shape(self, sample_shape: Shape = ()) -> Size:
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _validate_sample(self, value: Tensor) -> None:
        """ValueError for a value that no draw can be."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        events = len(self._event_shape)
        if tuple(value.shape[value.dim() - events :]) != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs"
                f" {self._event_shape}."
            )
        for i, j in zip(
            reversed(value.shape), reversed(self._batch_shape + self._event_shape), strict=False
        ):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs"
                    f" {self._batch_shape + self._event_shape}."
                )
        try:
            support = self.support
        except NotImplementedError:
            return
        if not _all_hold(support.check(value)):
            raise ValueError(
                "Expected value argument "
                f"({type(value).__name__} of shape {tuple(value.shape)}) to be within the support"
                f" ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        names = [n for n in self.arg_constraints if n in self.__dict__]
        parameters = ", ".join(
            f"{n}: {v if v.numel() == 1 else v.size()}"
            for n, v in ((n, self.__dict__[n]) for n in names)
        )
        return f"{type(self).__name__}({parameters})"


class ExponentialFamily(Distribution):
    """Densities exp(eta . t(x) - F(eta)): by natural parameters and a log normaliser."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """F - eta . F' - the mean of the carrier measure."""
        result = -self._mean_carrier_measure
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        gradients = mindtorch.autograd.grad(normalizer.sum(), params, create_graph=True)
        total = result + normalizer
        for param, gradient in zip(params, gradients, strict=True):
            term = param * gradient
            extra = term.dim() - len(self._batch_shape)
            total = total - (term.flatten(-extra).sum(-1) if extra > 0 else term)
        return total


class lazy_property:  # noqa: N801 - torch's name
    """A property that is computed once."""

    def __init__(self, wrapped: Callable[[Any], Tensor]):
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> lazy_property: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Tensor: ...

    def __get__(self, instance: Any, owner: type | None = None) -> Tensor | lazy_property:
        if instance is None:
            return self
        with mindtorch.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def broadcast_all(*values: Parameter) -> Sequence[Tensor]:
    """Tensors and numbers as tensors of one shape; ValueError for anything else."""
    if not all(isinstance(v, Tensor | int | float) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing"
            " __torch_function__."
        )
    first = next((v for v in values if isinstance(v, Tensor)), None)
    options: dict[str, Any] = {"dtype": mindtorch.get_default_dtype()}
    if first is not None:
        options = {"dtype": first.dtype, "device": first.device}
    tensors = [v if isinstance(v, Tensor) else mindtorch.tensor(v, **options) for v in values]
    if len(values) == 1:
        return tensors
    return mindtorch.broadcast_tensors(*tensors)


def _all_hold(valid: Tensor) -> bool:
    """Whether all are true; for elements of vmap's batch, those of all of it, as in torch."""
    whole: Any = valid
    while hasattr(whole, "_level"):
        whole = whole._value
    return bool(whole.all())


def shape_of(*parameters: Parameter) -> tuple[int, ...]:
    """The batch shape of broadcast parameters; () where all were numbers."""
    if all(isinstance(p, int | float) for p in parameters):
        return ()
    first = next(p for p in parameters if isinstance(p, Tensor))
    return tuple(first.shape)


def infinitesimal(tensor: Tensor) -> float:
    """The smallest positive normal number of a tensor's dtype."""
    return float(mindtorch.finfo(tensor.dtype).tiny)


def standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Draws of mean 0 and deviation 1."""
    return mindtorch.normal(
        mindtorch.zeros(shape, dtype=dtype, device=device),
        mindtorch.ones(shape, dtype=dtype, device=device),
    )


def sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape((*value.shape[:-dim], -1)).sum(-1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangle of `[*, D, D]`, row by row, as `[*, L]`."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    places = mindtorch.arange(n, device=mat.device)
    return mat[..., places < places.view(-1, 1) + (diag + 1)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The other way: `[*, L]` as lower triangles of `[*, D, D]`."""
    length = vec.shape[-1]
    n = (
        -(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5
    ) / 2
    if round(n) - n > mindtorch.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    size = round(n)
    places = mindtorch.arange(size, device=vec.device)
    mat = vec.new_zeros((*vec.shape[:-1], size, size))
    mat[..., places < places.view(-1, 1) + (diag + 1)] = vec
    return mat


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log-odds, or of unnormalised logarithms."""
    return mindtorch.sigmoid(logits) if is_binary else mindtorch.softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept away from 0 and 1 by the dtype's eps."""
    eps = mindtorch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log-odds, or logarithms, of probabilities."""
    clamped = clamp_probs(probs)
    if is_binary:
        return mindtorch.log(clamped) - mindtorch.log1p(-clamped)
    return mindtorch.log(clamped)
