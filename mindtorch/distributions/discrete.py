"""Owns distributions over a few values: Bernoulli, Categorical, one-hot, Geometric, Multinomial."""

from __future__ import annotations

import math

import mindtorch

from .._tensor.geometry import Size
from .._tensor.tensor import Tensor
from .._tensor.types import Shape
from . import constraints
from .distribution import (
    Distribution,
    ExponentialFamily,
    Parameter,
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

_ONE_OF = "Either `probs` or `logits` must be specified, but not both."


class _Binary(Distribution):
    """Distributions of a success probability, by `probs` or by log-odds `logits`."""

    arg_constraints = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = False
    _param: Tensor

    def _take(
        self, probs: Parameter | None, logits: Parameter | None, *others: Parameter
    ) -> tuple[int, ...]:
        """The batch's shape; what is broadcast with the parameter decides the dtype of a number."""
        parameter = probs if logits is None else logits
        if parameter is None or (probs is not None and logits is not None):
            raise ValueError(_ONE_OF)
        *_, self._param = broadcast_all(*others, parameter)
        self.__dict__["probs" if logits is None else "logits"] = self._param
        return () if isinstance(parameter, int | float) else tuple(self._param.shape)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def _expanded(self) -> tuple[str, ...]:
        return ("probs", "logits", "_param", "total_count")

    def _events_of(self, name: str) -> int:
        return 0


class Bernoulli(_Binary, ExponentialFamily):
    """1 with probability `probs`, else 0."""

    support: constraints.Constraint = constraints.boolean
    has_enumerate_support = True

    def __init__(
        self,
        probs: Parameter | None = None,
        logits: Parameter | None = None,
        validate_args: bool | None = None,
    ):
        super().__init__(self._take(probs, logits), validate_args=validate_args)

    @property
    def param_shape(self) -> Size:
        return Size(self._param.size())

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        return mindtorch.where(self.probs == 0.5, math.nan, mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with mindtorch.no_grad():
            return mindtorch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -_bce(logits, value)

    def entropy(self) -> Tensor:
        return _bce(self.logits, self.probs)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (mindtorch.logit(self.probs),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return mindtorch.log1p(mindtorch.exp(natural_params[0]))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = mindtorch.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values


def _bce(logits: Tensor, target: Tensor) -> Tensor:
    return mindtorch.nn.functional.binary_cross_entropy_with_logits(
        logits, target, reduction="none"
    )


class Geometric(_Binary):
    """The number of failures before the first success."""

    support: constraints.Constraint = constraints.nonnegative_integer

    def __init__(
        self,
        probs: Parameter | None = None,
        logits: Parameter | None = None,
        validate_args: bool | None = None,
    ):
        super().__init__(self._take(probs, logits), validate_args=validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            raise ValueError(
                f"Expected parameter probs ({type(self.probs).__name__} of shape"
                f" {tuple(self.probs.shape)}) of distribution {self!r} to be positive but found"
                f" invalid values:\n{self.probs[self.probs <= 0]}"
            )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return mindtorch.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        tiny = mindtorch.finfo(self.probs.dtype).tiny
        with mindtorch.no_grad():
            u = self.probs.new_empty(shape).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        none = (probs == 1) & (value == 0)
        return value * mindtorch.where(none, 0.0, (-probs).log1p()) + self.probs.log()

    def entropy(self) -> Tensor:
        return _bce(self.logits, self.probs) / self.probs


class Binomial(_Binary):
    """Successes of `total_count` tries."""

    total_count: Tensor

    has_enumerate_support = True
    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }

    def __init__(
        self, total_count: Parameter = 1, probs: Parameter | None = None,
        logits: Parameter | None = None, validate_args: bool | None = None,
    ):  # fmt: skip
        self._take(probs, logits, total_count)
        self.total_count, _ = broadcast_all(total_count, self._param)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def param_shape(self) -> Size:
        return Size(self._param.size())

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with mindtorch.no_grad():
            draws: Tensor = mindtorch.binomial(self.total_count.expand(shape),
                                               self.probs.expand(shape))  # fmt: skip
            return draws

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, logits = self.total_count, self.logits
        all_ways, ways = mindtorch.lgamma(n + 1), mindtorch.lgamma(value + 1)
        other_ways = mindtorch.lgamma(n - value + 1)
        # Half a gradient each side of 0.
        above = (logits.clamp(min=0) + logits - logits.clamp(max=0)) / 2
        norm = n * above + n * mindtorch.log1p(mindtorch.exp(-mindtorch.abs(logits))) - all_ways
        return value * logits - ways - other_ways - norm

    def _count(self, asker: str) -> int:
        """The one number of trials; NotImplementedError where elements have several."""
        most = int(self.total_count.max())
        if int(self.total_count.min()) != most:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{asker}`.")
        return most

    def enumerate_support(self, expand: bool = True) -> Tensor:
        most = self._count("enumerate_support")
        values = mindtorch.arange(1 + most, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def entropy(self) -> Tensor:
        self._count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(mindtorch.exp(log_prob) * log_prob).sum(0)


def _refuse_number(name: str, value: Tensor) -> None:
    if value.dim() < 1:
        raise ValueError(f"`{name}` parameter must be at least one-dimensional.")


class Categorical(Distribution):
    """An index by probabilities or unnormalised logarithms of them, along the last dimension."""

    arg_constraints = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    has_enumerate_support = True
    _param: Tensor

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if probs is not None and logits is None:
            _refuse_number("probs", probs)
            self.__dict__["probs"] = self._param = probs / probs.sum(-1, keepdim=True)
        elif logits is not None and probs is None:
            _refuse_number("logits", logits)
            self._param = logits - logits.logsumexp(dim=-1, keepdim=True)
            self.__dict__["logits"] = self._param
        else:
            raise ValueError(_ONE_OF)
        self._num_events = self._param.size(-1)
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits)

    @property
    def _expanded(self) -> tuple[str, ...]:
        return ("probs", "logits", "_param")

    def _events_of(self, name: str) -> int:
        return 1

    @property
    def param_shape(self) -> Size:
        return Size(self._param.size())

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return mindtorch.full(self._batch_shape, math.nan, dtype=self.probs.dtype,
                              device=self.probs.device)  # fmt: skip

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        shape = Size(sample_shape)
        flat = self.probs.reshape(-1, self._num_events)
        draws = mindtorch.multinomial(flat.detach(), shape.numel(), True).T
        return draws.reshape(self._extended_shape(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        index = value.long().unsqueeze(-1)
        index, logits = mindtorch.broadcast_tensors(index, self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        smallest = mindtorch.finfo(self.logits.dtype).min
        return -(self.logits.clamp(min=smallest) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = mindtorch.arange(self._num_events, dtype=mindtorch.long, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values


class OneHotCategorical(Distribution):
    """Categorical, as one-hot vectors."""

    arg_constraints = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support: constraints.Constraint = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return _one_hot(self.probs.argmax(dim=-1), self._event_shape[0]).to(self.probs)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    @property
    def param_shape(self) -> Size:
        return self._categorical.param_shape

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        return _one_hot(self._categorical.sample(sample_shape), self._event_shape[0]).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = mindtorch.eye(n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.view((n,) + (1,) * len(self._batch_shape) + (n,))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot draws whose gradient is the probabilities'."""

    has_rsample = True

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        draws = self.sample(sample_shape)
        return draws + (self.probs - self.probs.detach())


def _one_hot(index: Tensor, count: int) -> Tensor:
    return mindtorch.nn.functional.one_hot(index, count)


class Multinomial(Distribution):
    """Counts of `total_count` categorical draws."""

    arg_constraints = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }

    def __init__(
        self, total_count: int = 1, probs: Tensor | None = None, logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):  # fmt: skip
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits)
        Binomial(total_count, self._categorical.probs, validate_args=validate_args)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    @property
    def param_shape(self) -> Size:
        return self._categorical.param_shape

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        draws = self._categorical.sample((self.total_count, *Size(sample_shape)))
        return _one_hot(draws, self._event_shape[0]).sum(0).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        ways = mindtorch.lgamma(value.sum(-1) + 1) - mindtorch.lgamma(value + 1).sum(-1)
        logits = mindtorch.where((value == 0) & (self.logits == -math.inf), 0.0, self.logits)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = self.total_count
        counts = Binomial(n, self.probs, validate_args=False)
        values = counts.enumerate_support(expand=False)[1:]
        weights = mindtorch.exp(counts.log_prob(values))
        ways = (weights * mindtorch.lgamma(values + 1)).sum((0, -1))
        return n * self._categorical.entropy() - math.lgamma(n + 1) + ways
