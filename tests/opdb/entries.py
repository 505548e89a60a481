"""Owns the entries: operators, foreach operators, modules and optimizers of torch's databases."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch

from .translate import Translator, attribute, code, rewritten

# Entries whose results hold what memory held, or what a generator drew.
UNDETERMINED = ("empty", "rand", "dropout", "rrelu", "fractional_max_pool", "multinomial",
                "bernoulli", "normal", "cauchy", "exponential", "geometric", "uniform",
                "svd_lowrank", "pca_lowrank", "resize_")  # fmt: skip
UP_TO_SIGNS = ("svd", "linalg.svd", "linalg.eigh", "linalg.eig", "svd_lowrank", "pca_lowrank")
LARGEST = 200_000  # elements of a sample's largest tensor


@dataclass(frozen=True)
class Case:
    """One call: `run(lib, device)` gives the results and the gradients, with torch or mindtorch."""

    label: str
    run: Callable[[Any, str], tuple[Any, list[Any]]]


@dataclass(frozen=True)
class Entry:
    """One entry of a database. `cases(dtype, limit)` are its calls in a dtype."""

    name: str
    kind: str
    dtypes: frozenset[torch.dtype]
    cases: Callable[[torch.dtype, int], Iterator[Case]]
    errors: Callable[[], Iterator[tuple[Case, Any]]]
    values: bool = True


def weighted(lib: Any, outputs: Any) -> Any:
    """A sum of all differentiable outputs with fixed weights; None where there are none."""
    total = None
    outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
    for i, out in enumerate(outputs):
        if not getattr(out, "requires_grad", False):
            continue
        drawn = np.random.default_rng(i).uniform(0.5, 1.5, tuple(out.shape))
        weights = lib.tensor(drawn, dtype=out.dtype, device=out.device)
        part = (out * weights).sum()
        part = part.real if part.is_complex() else part
        total = part if total is None else total + part
    return total


def gradients(lib: Any, outputs: Any, leaves: list[Any]) -> list[Any]:
    """Gradients of the weighted sum with respect to the leaves; None where unused."""
    loss = weighted(lib, outputs) if leaves else None
    if loss is None:
        return []
    return list(lib.autograd.grad(loss, leaves, allow_unused=True))


def function_of(op: Any, lib: Any) -> Any:
    """The entry's function in torch or mindtorch."""
    if lib is torch:
        return op.op
    name = op.name.removeprefix("torch.").removesuffix(".default")
    try:
        found: Any = torch
        for part in op.name.split("."):
            found = getattr(found, part)
        named = found is op.op
    except AttributeError:
        named = False
    if named or op.name.startswith(("_foreach", "torch.ops", "torch._")):
        # An entry of torch's may have the writing form alone: `_foreach_copy`.
        return attribute(name if not name.startswith("_foreach") else op.op.__name__)
    if type(op.op).__module__.startswith("torch.cuda"):
        return attribute("cuda.jiterator")
    return code(op.op)


def _sample_case(op: Any, sample: Any, label: str) -> Case:
    def run(lib: Any, device: str) -> tuple[Any, list[Any]]:
        carry = Translator(lib, device)
        function = function_of(op, lib)
        input, args, kwargs = carry(sample.input), carry(sample.args), carry(sample.kwargs)
        torch.manual_seed(0)
        result = function(input, *args, **kwargs)
        result = input if result is None else result  # what writes gives nothing
        process = sample.output_process_fn_grad
        if lib is not torch and getattr(process, "__module__", "").startswith("torch"):
            process = rewritten(process) if hasattr(process, "__code__") else code(process)
        shown = process(result)
        # What is unique only up to signs is compared as the database's own tests make it unique.
        alike = result if op.name not in UP_TO_SIGNS else shown
        return alike, gradients(lib, shown, carry.leaves)

    return Case(label, run)


def _small(sample: Any) -> bool:
    tensors: list[torch.Tensor] = []

    def look(value: Any) -> None:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
        elif isinstance(value, list | tuple):
            for part in value:
                look(part)

    look([sample.input, sample.args, list(sample.kwargs.values())])
    return all(t.numel() <= LARGEST for t in tensors)


def _operator(op: Any, kind: str) -> Entry:
    def cases(dtype: torch.dtype, limit: int) -> Iterator[Case]:
        grad = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
        torch.manual_seed(0)
        np.random.seed(0)
        given = op.sample_inputs("cpu", dtype, requires_grad=grad)
        for i, sample in enumerate(islice(filter(_small, given), limit or None)):
            yield _sample_case(op, sample, f"{str(dtype)[6:]} sample {i}")

    def errors() -> Iterator[tuple[Case, Any]]:
        if op.error_inputs_func is None:
            return
        for i, error in enumerate(op.error_inputs("cpu")):
            yield _sample_case(op, error.sample_input, f"error {i}"), error

    name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
    values = not any(word in name for word in UNDETERMINED)
    return Entry(name, kind, frozenset(op.supported_dtypes("cpu")), cases, errors, values)


def _module_case(info: Any, given: Any, training: bool, dtype: torch.dtype, label: str) -> Case:
    def run(lib: Any, device: str) -> tuple[Any, list[Any]]:
        carry = Translator(lib, device)
        name = f"{info.module_cls.__module__}.{info.module_cls.__name__}"
        made = info.module_cls if lib is torch else attribute(f"nn.{name.rpartition('.')[2]}")
        start = given.constructor_input
        torch.manual_seed(0)
        module = made(*carry(start.args), **carry(start.kwargs))
        torch.manual_seed(0)
        model = info.module_cls(*start.args, **start.kwargs).to(dtype)
        state = {k: v for k, v in model.state_dict().items() if isinstance(v, torch.Tensor)}
        module = module.to(carry(dtype)).to(device)
        if state and not info.is_lazy:
            module.load_state_dict({k: carry(v) for k, v in state.items()})
        module.train(training)
        forward = given.forward_input
        result = module(*carry(forward.args), **carry(forward.kwargs))
        leaves = [*carry.leaves, *(p for p in module.parameters() if not info.is_lazy)]
        return result, gradients(lib, result, leaves)

    return Case(label, run)


def _module(info: Any) -> Entry:
    def cases(dtype: torch.dtype, limit: int) -> Iterator[Case]:
        for training in (False, True) if info.train_and_eval_differ else (True,):
            torch.manual_seed(0)
            given = info.module_inputs_func(
                info, device="cpu", dtype=dtype, requires_grad=True, training=training
            )
            for i, one in enumerate(islice(given, limit or None)):
                label = f"{str(dtype)[6:]} {'train' if training else 'eval'} {i}"
                yield _module_case(info, one, training, dtype, label)

    name = f"{info.module_cls.__module__.removeprefix('torch.')}.{info.module_cls.__name__}"
    drawn = any(word in name for word in ("Dropout", "RReLU", "FractionalMaxPool"))
    lazy = "lazy" if info.is_lazy else ""
    values = not drawn and not lazy
    return Entry(name, "module", frozenset(info.dtypes), cases, lambda: iter(()), values)


def _optimizer_case(info: Any, given: Any, label: str) -> Case:
    def run(lib: Any, device: str) -> tuple[Any, list[Any]]:
        carry = Translator(lib, device)
        made = info.optim_cls if lib is torch else attribute(f"optim.{info.optim_cls.__name__}")
        drawn = np.random.default_rng(0)
        arrays = [drawn.standard_normal(s).astype("float32") for s in ((3, 4), (4, 2))]
        params = [lib.tensor(a, device=device).requires_grad_() for a in arrays]
        optimizer = made(params, **carry(given.kwargs))
        x = lib.tensor(drawn.standard_normal((5, 3)).astype("float32"), device=device)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = (x @ params[0] @ params[1]).square().mean()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        return [p.detach() for p in params], []

    return Case(label, run)


def _optimizer(info: Any) -> Entry:
    def cases(dtype: torch.dtype, limit: int) -> Iterator[Case]:
        for given in islice(info.optim_inputs_func(device="cpu"), limit or None):
            yield _optimizer_case(info, given, given.desc)

    name = f"optim.{info.optim_cls.__name__}"
    return Entry(name, "optimizer", frozenset((torch.float32,)), cases, lambda: iter(()))


def entries() -> list[Entry]:
    """Every entry, in the databases' order."""
    from torch.testing._internal import common_methods_invocations as methods
    from torch.testing._internal.common_modules import module_db
    from torch.testing._internal.common_optimizers import optim_db

    each = ("unary", "binary", "pointwise", "reduce", "other")
    foreach = [op for kind in each for op in getattr(methods, f"foreach_{kind}_op_db")]
    return [
        *(_operator(op, "operator") for op in methods.op_db),
        *(_operator(op, "foreach") for op in foreach),
        *map(_module, module_db),
        *map(_optimizer, optim_db),
    ]
