"""Owns steps of optimizers as functions of lists: parameters, gradients and states side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any

from .._tensor.tensor import Tensor
from .optimizer import Group, Optimizer

Lists = Mapping[str, Sequence[Tensor | None]]


def step_of_lists(
    kind: type[Optimizer], params: Sequence[Tensor], grads: Sequence[Tensor], states: Lists,
    group: Group,
) -> list[dict[str, Any]]:  # fmt: skip
    """Updates every parameter by `kind`'s formula; gives their states, whose tensors are changed.

    `states` has a list for each name of a state; RuntimeError for steps that are no tensors.
    """
    if not all(isinstance(t, Tensor) for t in states.get("step", ())):
        raise RuntimeError(
            "API has changed, `state_steps` argument must contain a list of singleton tensors"
        )
    optimizer = kind.__new__(kind)
    optimizer.state = {
        p: {name: values[i] for name, values in states.items() if values and values[i] is not None}
        for i, p in enumerate(params)
    }
    for p, grad in zip(params, grads, strict=True):
        optimizer._update(p, grad, group)
    return [optimizer.state[p] for p in params]


# Options of a function that are one option of the class.
_PAIRS = {"betas": ("beta1", "beta2"), "etas": ("etaminus", "etaplus"),
          "step_sizes": ("step_size_min", "step_size_max")}  # fmt: skip
_OPTIONS = {"foreach": None, "fused": None, "grad_scale": None, "found_inf": None}


def functional_form(
    kind: type[Optimizer], states: Mapping[str, str], options: str, required: str
) -> Callable[..., None]:
    """`kind`'s step as a function of lists, by its name in lower case.

    `states` has the name of each list and that of the state; `options` come after the lists and
    may be left out, `required` are keywords. RuntimeError for steps that are no tensors.
    """
    either, named = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
    signature = Signature(
        [Parameter(name, either) for name in ("params", "grads", *states)]
        + [Parameter(n, either, default=_OPTIONS.get(n, False)) for n in options.split()]
        + [Parameter(name, named) for name in required.split()]
    )
    name = kind.__name__.lower()

    def step(*lists: Any, **passed: Any) -> None:
        bound = signature.bind(*lists, **passed)
        bound.apply_defaults()
        group = bound.arguments
        if not all(isinstance(t, Tensor) for t in group.get("mu_products", ())):
            raise RuntimeError(
                "API has changed, `mu_products` argument must contain a list of singleton tensors"
            )
        of_class = {state: group[name] for name, state in states.items()}
        group |= {pair: (group[a], group[b]) for pair, (a, b) in _PAIRS.items() if a in group}
        step_of_lists(kind, group["params"], group["grads"], of_class, group)

    step.__name__ = step.__qualname__ = name
    step.__module__, step.__doc__ = kind.__module__, f"One step of {kind.__name__}, of lists."
    step.__dict__["__signature__"] = signature
    return step
