"""torch._functorch.aot_autograd: a function with its gradients as two graphs for a compiler."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mindtorch import autograd
from mindtorch._autograd.grad_mode import LOCAL, enable_grad
from mindtorch._random.generator import get_rng_state
from mindtorch._tensor.tensor import Tensor
from mindtorch.func import functional_call
from mindtorch.fx import GraphModule
from mindtorch.fx.dispatch_trace import DispatchRecorder
from mindtorch.nn.modules.module import Module
from mindtorch.nn.parameter import Parameter
from mindtorch.utils._pytree import tree_flatten, tree_unflatten

from .partitioners import default_partition, part

Compiler = Callable[[GraphModule, Sequence[Any]], Callable[..., Any]]
_UNBOXED = (
    "Your compiler for AOTAutograd is returning a function that doesn't take boxed arguments."
    " Please wrap it with functorch.compile.make_boxed_func or handle the boxed arguments"
    " yourself. See https://github.com/pytorch/pytorch/pull/83137#issuecomment-1211320670 for"
    " rationale."
)


def make_boxed_func(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` as a function of one list of arguments."""

    def g(args: Sequence[Any]) -> Any:
        return f(*args)

    g._boxed_call = True  # type: ignore[attr-defined]
    return g


def make_boxed_compiler(compiler: Compiler) -> Compiler:
    """A compiler whose functions take one list of arguments."""
    return lambda fx_g, inputs: make_boxed_func(compiler(fx_g, inputs))


def _boxed(run: Callable[..., Any]) -> Callable[..., Any]:
    if getattr(run, "_boxed_call", False):
        return run
    warnings.warn(_UNBOXED, stacklevel=1)  # one line for all: said once
    return make_boxed_func(run)


def _compiled(compiler: Compiler, module: GraphModule) -> Callable[..., Any]:
    inputs = [n.meta.get("val") for n in module.graph.nodes if n.op == "placeholder"]
    return _boxed(compiler(module, inputs))


class _Joint:
    """A function of flat arguments, traced once: its results, and its gradients where wanted."""

    def __init__(self, fn: Callable[..., Any], leaves: Sequence[Any], training: bool):
        self.recorder = DispatchRecorder(functional=True)
        name = "primals_{}" if training else "arg{}_1"
        primals = [self._input(name.format(i + training), v) for i, v in enumerate(leaves)]
        state = get_rng_state().tolist()
        with self.recorder, enable_grad() if training else autograd.no_grad():
            self.outputs, self.out_spec = tree_flatten(fn(*primals))
        if get_rng_state().tolist() != state:
            raise NotImplementedError(
                "functorch.compile: random numbers in a function are no part of its graph here;"
                " draw them outside and hand them in"
            )
        self.results = [self.recorder.argument(o) for o in self.outputs]
        nodes = [n for n in self.recorder.graph.nodes if n.op == "placeholder"]
        pairs = zip(primals, nodes, strict=True)
        self.recorder.write_back([(p, n) for p, n in pairs if isinstance(p, Tensor)])
        if training:
            self._differentiate(primals)

    def _input(self, name: str, value: Any) -> Any:
        if not isinstance(value, Tensor):
            self.recorder.graph.placeholder(name)
            return value
        primal = value.detach().clone().requires_grad_(value.requires_grad)
        self.recorder.placeholder(name, primal)
        return primal

    def _differentiate(self, primals: Sequence[Any]) -> None:
        """Add the gradients of the results by the inputs."""
        graph = self.recorder.graph
        forward = set(graph.nodes)
        outputs = [o for o in self.outputs if isinstance(o, Tensor) and o.requires_grad]
        sources = [p for p in primals if isinstance(p, Tensor) and p.requires_grad]
        tangents = [o.detach().clone() for o in outputs]
        last = [n for n in graph.nodes if n.op == "placeholder"][-1]
        for i, tangent in enumerate(tangents):
            with graph.inserting_after(last):
                last = self.recorder.placeholder(f"tangents_{i + 1}", tangent)
        grads: list[Any] = []
        if outputs:
            with self.recorder:
                grads += autograd.grad(outputs, sources, tangents, allow_unused=True)
        parts = iter(grads)
        for primal in primals:
            needs = isinstance(primal, Tensor) and primal.requires_grad and grads
            self.results.append(self.recorder.argument(next(parts)) if needs else None)
        for node in graph.nodes:
            backward = node not in forward
            node.meta["partitioner_tag"] = "is_backward" if backward else "is_forward"

    def module(self) -> GraphModule:
        """The whole graph."""
        self.recorder.graph.output(tuple(self.results))
        return GraphModule(self.recorder.root, self.recorder.graph)


class CompiledFunctionBackward(autograd.Function):
    """The gradients of a compiled function: `run` of the arguments, with no derivatives."""

    @staticmethod
    def forward(_: Any, run: Callable[..., Any], *args: Any) -> Any:
        return tuple(run(list(args)))

    @staticmethod
    def backward(*_: Any) -> NoReturn:
        raise RuntimeError(
            "torch.compile with aot_autograd does not currently support double backward"
        )


class _CompiledResults(autograd.Function):
    """The results of a function of `sources`, whose gradients have no derivatives by them."""

    @staticmethod
    def forward(ctx: Any, sources: Sequence[Tensor], *results: Tensor) -> Any:
        ctx.sources = sources
        ctx.set_materialize_grads(False)
        return tuple(r.detach() for r in results)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        some = [g for g in grads if g is not None]
        parts = iter(CompiledFunctionBackward.apply(
            lambda args: (a.detach() for a in args[: len(some)]), *some, *ctx.sources
        ))  # fmt: skip
        return None, *(None if g is None else next(parts) for g in grads)


_CompiledResults.__name__ = "CompiledFunction"  # of the node


def without_second_derivatives(results: Any, sources: Sequence[Tensor]) -> Any:
    """What a function computed of `sources`, as results of one node of autograd."""
    leaves, spec = tree_flatten(results)
    memory = {id(t._storage) for t in sources}
    places = [
        at for at, v in enumerate(leaves)
        if type(v) is Tensor and v.grad_fn is not None and v._base is None
        and id(v._storage) not in memory
    ]  # fmt: skip
    if places:
        values = _CompiledResults.apply(sources, *(leaves[at] for at in places))
        for at, value in zip(places, values, strict=True):
            leaves[at] = value
    return tree_unflatten(leaves, spec)


def _differentiable(
    joint: _Joint, fw_compiler: Compiler, bw_compiler: Compiler, partition_fn: Callable[..., Any],
    lasting: Sequence[int],
) -> Callable[..., Any]:  # fmt: skip
    """What runs the two graphs as one node of autograd."""
    module, count = joint.module(), len(joint.outputs)
    fw_module, bw_module = partition_fn(
        module, (), num_fwd_outputs=count, static_lifetime_input_indices=lasting
    )
    forward_run = _compiled(fw_compiler, fw_module)
    constant = [not (isinstance(o, Tensor) and o.requires_grad) for o in joint.outputs]
    backward_runs: list[Callable[..., Any]] = []

    class CompiledFunction(autograd.Function):
        """The node."""

        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            values = tuple(forward_run(list(args)))
            ctx.save_for_backward(*values[count:])
            outputs = values[:count]
            fixed = [o for o, c in zip(outputs, constant, strict=True) if c]
            ctx.mark_non_differentiable(*(o for o in fixed if isinstance(o, Tensor)))
            return outputs

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if not backward_runs:
                backward_runs.append(_compiled(bw_compiler, bw_module))
            tangents = [g for g, c in zip(grads, constant, strict=True) if not c]
            run = backward_runs[0]
            return CompiledFunctionBackward.apply(run, *ctx.saved_tensors, *tangents)

    run: Callable[..., Any] = CompiledFunction.apply
    return run


def _compile(
    fn: Callable[..., Any], leaves: Sequence[Any], fw_compiler: Compiler,
    bw_compiler: Compiler | None, partition_fn: Callable[..., Any],
    inference_compiler: Compiler | None, lasting: Sequence[int] = (),
) -> tuple[Callable[..., Any], Any]:  # fmt: skip
    """What runs a function of flat arguments, and the spec of its results.

    `lasting`: which arguments are in memory anyway.
    """
    tensors = [v for v in leaves if isinstance(v, Tensor)]
    training = bool(LOCAL.grad) and any(t.requires_grad for t in tensors)
    joint = _Joint(fn, leaves, training)
    if training:
        compilers = fw_compiler, bw_compiler or fw_compiler
        run = _differentiable(joint, *compilers, partition_fn, lasting)
        return run, joint.out_spec
    module = joint.module()
    inputs = [n for n in module.graph.nodes if n.op == "placeholder"]
    boxed = _compiled(inference_compiler or fw_compiler, part(module, inputs, joint.results))
    return lambda *args: boxed(list(args)), joint.out_spec


def aot_function(
    fn: Callable[..., Any], fw_compiler: Compiler, bw_compiler: Compiler | None = None,
    partition_fn: Callable[..., Any] = default_partition, decompositions: object = None,
    num_params_buffers: int = 0, keep_inference_input_mutations: bool = False,
    inference_compiler: Compiler | None = None, *, dynamic: bool = False, enable_log: bool = True,
) -> Callable[..., Any]:  # fmt: skip
    """`fn`, traced at its first call: `fw_compiler` gets the graph of its results, `bw_compiler`
    that of its gradients at the first backward pass."""
    compiled: list[tuple[Callable[..., Any], Any]] = []

    def returned_function(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((args, kwargs))

        def flat(*values: Any) -> Any:
            places, named = tree_unflatten(values, spec)
            return fn(*places, **named)

        if not compiled:
            compiled.append(_compile(
                flat, leaves, fw_compiler, bw_compiler, partition_fn, inference_compiler
            ))  # fmt: skip
        run, out_spec = compiled[0]
        results = list(run(*leaves))
        flat_sequence = out_spec.type in (tuple, list) and out_spec.num_children == len(results)
        return results if flat_sequence else tree_unflatten(results, out_spec)

    return returned_function


def aot_module(mod: Module, *args: Any, **kwargs: Any) -> Module:
    """A module whose calls are those of `aot_function`; its state is inputs before the others."""

    def call(state: dict[str, Any], places: Sequence[Any], named: dict[str, Any]) -> Any:
        return functional_call(mod, state, tuple(places), named)

    compiled = aot_function(call, *args, **kwargs)

    class AOTModule(Module):
        """The module."""

        def __init__(self) -> None:
            super().__init__()
            self.orig_module = mod

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            """The module's result."""
            state = {**dict(mod.named_parameters()), **dict(mod.named_buffers())}
            return compiled(state, args, kwargs)

    return AOTModule()


def aot_module_simplified(
    mod: Module, args: Sequence[Any], fw_compiler: Compiler, bw_compiler: Compiler | None = None,
    partition_fn: Callable[..., Any] = default_partition, decompositions: object = None,
    keep_inference_input_mutations: bool = False, inference_compiler: Compiler | None = None,
    **_: object,
) -> Callable[..., Any]:  # fmt: skip
    """What runs a module with arguments like `args`: traced now, its state before them."""
    state = {**dict(mod.named_parameters(remove_duplicate=False)), **dict(mod.named_buffers())}

    def flat(*values: Any) -> Any:
        inner = dict(zip(state, values, strict=False))
        return functional_call(mod, inner, values[len(state) :])

    leaves = [*state.values(), *args]
    lasting = [i for i, v in enumerate(leaves) if isinstance(v, Parameter)]
    run, spec = _compile(
        flat, leaves, fw_compiler, bw_compiler, partition_fn, inference_compiler, lasting
    )

    def forward(*runtime_args: Any) -> Any:
        return tree_unflatten(run(*state.values(), *runtime_args), spec)

    return forward
