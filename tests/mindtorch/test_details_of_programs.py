"""What whole programs see besides values, on cpu and npu: text, memory, classes, order, errors.

Each snippet runs on torch (cpu) and on mindtorch (cpu and npu); what it returns is compared as
text, and numbers of tensors to four digits. `dev` is the device.
"""

import copy
import importlib
import inspect
import io
import pickle
import warnings

import numpy as np
import pytest

import mindtorch
from mindtorch._compat import warn_once
from mindtorch._tensor.typed_storage import warn_of_removal
from mindtorch.ops.spec import aten

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def outcome(lib, device, function):
    """What a snippet gives, as text; the class of what it raises."""
    try:
        return text(function(lib, device)).replace(f", device='{device}:0'", "")
    except Exception as error:
        return f"raises {type(error).__name__}"


def text(value):
    if isinstance(value, tuple | list):
        return "\n".join(text(v) for v in value)
    return str(value)


def agree(dev, function):
    assert outcome(mindtorch, dev, function) == outcome(torch, "cpu", function)


def test_a_shallow_copy_shares_memory_layout_and_attributes(dev):
    def run(t, dev):
        x = t.arange(6.0, device=dev).reshape(2, 3).t()[1:]
        x.note = "kept"
        y = copy.copy(x)
        y += 1
        return x, y, y.stride(), y.storage_offset(), y.note, y.data_ptr() == x.data_ptr()

    agree(dev, run)


def test_a_shallow_copy_of_a_leaf_is_a_leaf_of_its_class(dev):
    def run(t, dev):
        x = t.ones(2, device=dev, requires_grad=True)
        p = t.nn.Parameter(t.ones(2, device=dev))
        return [
            (type(c).__name__, c.requires_grad, c.is_leaf, c.grad) for c in map(copy.copy, (x, p))
        ]

    agree(dev, run)


def test_a_deep_copy_keeps_attributes(dev):
    def run(t, dev):
        x = t.ones(2, device=dev)
        x.names_of_rows = ["a", "b"]
        y = copy.deepcopy(x)
        y.names_of_rows.append("c")
        return x.names_of_rows, y.names_of_rows

    agree(dev, run)


def test_batched_gradients_are_rows_of_a_jacobian(dev):
    def run(t, dev):
        x = t.arange(3.0, device=dev).requires_grad_()
        z = t.ones(3, device=dev, requires_grad=True)
        rows = t.autograd.grad(x * x, x, t.eye(3, device=dev), is_grads_batched=True)
        unused = t.autograd.grad(
            x * x, (x, z), t.eye(3, device=dev), is_grads_batched=True, allow_unused=True
        )
        return rows[0], unused[1], x.grad

    agree(dev, run)


def test_lists_may_hold_tensors_of_the_device_behind_numbers(dev):
    def run(t, dev):
        one = t.ones((), device=dev)
        return t.tensor([1.0, one]), t.tensor([[1, 2.5], [one, 3]]), t.tensor([one, 2]).dtype

    agree(dev, run)


@pytest.mark.parametrize(
    "data",
    [["a"], "a", [1, "a"], ["a", 1], [["a"]], [[1], ["a"]], [1, None], [[1, 2], "ab"], [None],
     [int], [{}]],
    ids=repr,
)  # fmt: skip
def test_what_is_no_number_is_refused_by_the_same_class(data):
    agree("cpu", lambda t, dev: t.tensor(data))


def test_a_reversed_tensor_is_a_tensor(dev):
    def run(t, dev):
        x = t.arange(4.0, device=dev).reshape(2, 2).requires_grad_()
        return reversed(x), reversed(t.tensor(3, device=dev)), list(reversed(x.detach()))

    agree(dev, run)


class Tagged:
    """Makes a subclass of each library's Tensor."""

    classes = {}

    @classmethod
    def of(cls, lib):
        return cls.classes.setdefault(lib, type("Tagged", (lib.Tensor,), {}))


def test_a_parameter_of_a_subclass_stays_of_its_class(dev):
    def run(t, dev):
        data = t.ones(2, device=dev).as_subclass(Tagged.of(t))
        p = t.nn.Parameter(data)
        layer = t.nn.Linear(2, 2).to(dev)
        layer.bias = p
        named = [(n, type(v).__name__) for n, v in layer.named_parameters()]
        return type(p).__name__, isinstance(p, t.nn.Parameter), repr(p), p.is_leaf, named

    agree(dev, run)


def test_instances_of_subclasses_are_shown_by_their_class(dev):
    def run(t, dev):
        x = t.ones(2, device=dev).as_subclass(Tagged.of(t))
        kin = type("Kin", (t.nn.Parameter,), {})
        return x, x.sum(), x.int(), t.zeros(0, device=dev).as_subclass(Tagged.of(t)), kin(t.ones(1))

    agree(dev, run)


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_attention_takes_a_mask_and_causality(dev, kind):
    def run(t, dev):
        q = (t.arange(12.0, device=dev) / 10).reshape(1, 1, 3, 4).requires_grad_()
        mask = t.tensor([[True, True, True], [True, False, True], [False, True, True]], device=dev)
        if kind == "float":
            mask = t.where(mask, 0.5, float("-inf"))
        out = t.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask, is_causal=True)
        out.sum().backward()
        return out.detach(), q.grad

    agree(dev, run)


@pytest.mark.parametrize(
    "name", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"]
)
def test_limits_of_floats_are_shown(name):
    agree("cpu", lambda t, dev: (t.finfo(getattr(t, name)), t.finfo(getattr(t, name)).resolution))


def test_limits_of_integers_are_shown():
    agree("cpu", lambda t, dev: [t.iinfo(d) for d in (t.uint8, t.int8, t.int32, t.int64)])


def test_storages_are_shown_element_by_element():
    def run(t, dev):
        x = t.tensor([1, -2], dtype=t.int8)
        empty = t.ones(0).untyped_storage()
        return x.untyped_storage(), x.untyped_storage()[:1], empty, t.empty(3, device="meta")

    agree("cpu", run)


def test_long_sparse_tensors_are_wrapped_as_torch_wraps_them():
    def run(t, dev):
        return t.eye(30).to_sparse(), t.zeros(2, 3).to_sparse(), t.eye(4, dtype=t.int32).to_sparse()

    agree("cpu", run)


def test_the_state_of_a_scaler_is_in_torchs_order(dev):
    agree(dev, lambda t, dev: list(t.amp.GradScaler(dev).state_dict().items()))


def test_conjugates_say_so(dev):
    def run(t, dev):
        z = t.tensor([1 + 2j, 3j], device=dev)
        c = z.conj()
        return (c.is_conj(), c.conj().is_conj(), c.resolve_conj().is_conj(), (c + 1).is_conj(),
                c.clone().is_conj(), t.ones(1).conj().is_conj(), z.is_conj())  # fmt: skip

    agree(dev, run)


@pytest.mark.parametrize(
    "body",
    [b"zzzz", b"garbage data", bytes(50), b"PK\x03\x04" + b"a" * 50, pickle.dumps([1, 2], 2), b""],
)
@pytest.mark.parametrize("strict", [True, False])
def test_files_that_torch_did_not_write_are_refused_by_the_same_class(body, strict):
    agree("cpu", lambda t, dev: t.load(io.BytesIO(body), weights_only=strict))


def test_a_compiled_module_holds_the_module(dev):
    def run(t, dev):
        plain = t.nn.Sequential(t.nn.Linear(2, 2), t.nn.Dropout()).to(dev)
        module = t.compile(plain, backend="eager")
        module.eval()
        module.extra = 3
        other = t.compile(t.nn.Linear(2, 2), backend="eager")
        names = [type(module).__name__, list(module.state_dict()), module, plain.training]
        same = module._orig_mod is plain, module[0] is plain[0], plain.extra, len(module)
        shared = [n for n, _ in module.named_parameters()], isinstance(module, t.nn.Module)
        other.weight = t.nn.Parameter(t.ones(1, 2))
        return names, same, shared, module(t.ones(1, 2, device=dev)).shape, other._orig_mod.weight

    agree(dev, run)


def test_a_compiled_function_is_called_as_before():
    def run(t, dev):
        @t.compile(backend="eager")
        def double(x):
            return x * 2

        return double(t.ones(2)), double.__name__

    agree("cpu", run)


def test_a_dispatch_mode_sees_operators_below_autograd(dev):
    def run(t, dev):
        from importlib import import_module

        mode = import_module(f"{t.__name__}.utils._python_dispatch").TorchDispatchMode

        class Log(mode):
            def __init__(self):
                super().__init__()
                self.calls = []

            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                self.calls.append((str(func), len(args)))
                return func(*args, **(kwargs or {}))

        x = t.ones(2, device=dev, requires_grad=True)
        with Log() as log:
            y = (x * x).neg()
            y.mul_(2.0)
        z, w = x + 1, t.full((3, 2), 0.5, device=dev, requires_grad=True)
        with Log():
            t.nn.functional.linear(x, w, w[:, 0]).sum().backward()
        return log.calls, y, y.requires_grad, z, w.grad, x.grad

    agree(dev, run)


def test_a_dispatch_mode_may_change_results(dev):
    def run(t, dev):
        from importlib import import_module

        mode = import_module(f"{t.__name__}.utils._python_dispatch").TorchDispatchMode

        class Zero(mode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return t.zeros_like(func(*args, **(kwargs or {})))

        with Zero():
            return t.ones(2, device=dev) + 1

    agree(dev, run)


def test_overridable_functions_are_listed():
    def run(t):
        functional, method = t.nn.functional, t.Tensor
        table, ignored = (
            t.overrides.get_overridable_functions(),
            t.overrides.get_ignored_functions(),
        )
        stand_ins = t.overrides.get_testing_overrides()
        asked = (t.add, t.zeros, t.is_grad_enabled, t.linalg.norm, functional.relu, method.add,
                 method.new_zeros, method.add_, method.__getitem__, method.__add__,
                 method.shape.__get__)  # fmt: skip
        listed = [any(f in functions for functions in table.values()) for f in asked]
        signatures = [inspect.signature(stand_ins[f]) for f in (functional.conv2d, method.backward)]
        names = [list(s.parameters) for s in signatures]
        return listed, [f in stand_ins for f in asked], [f in ignored for f in asked], names

    assert run(mindtorch) == run(torch)
    stand_in = mindtorch.overrides.get_testing_overrides()[mindtorch.Tensor.sum]
    assert stand_in(1, dim=2) == -1


def test_batch_norms_forget_their_statistics_for_functions():
    def run(t, dev):
        net = t.nn.Sequential(t.nn.BatchNorm1d(3), t.nn.Sequential(t.nn.BatchNorm2d(2)))
        t.func.replace_all_batch_norm_modules_(net)
        return net, list(net.state_dict()), net[0].running_mean

    agree("cpu", run)


def test_numbers_are_rounded_as_if_they_were_quantised(dev):
    def run(t, dev):
        x = t.tensor([[-3.0, -0.26, 0.25, 0.35], [0.0, 1.0, 13.0, 99.0]], device=dev)
        x.requires_grad_()
        y = t.fake_quantize_per_tensor_affine(x, 0.1, 2, -128, 127)
        y.sum().backward()
        scales = t.tensor([0.1, 0.5], device=dev)
        points = t.tensor([0, 3], dtype=t.int32, device=dev)
        z = t.fake_quantize_per_channel_affine(x.detach(), scales, points, 0, -8, 7)
        one = t.tensor([0.1], device=dev)
        w = t.fake_quantize_per_tensor_affine(x.detach(), one, points[:1], -8, 7)
        return y, x.grad, z, w

    agree(dev, run)


@pytest.mark.parametrize(
    "args", [(0.1, 300, 0, 255), (0.1, 0, 5, 1)], ids=["zero point", "empty range"]
)
def test_ranges_of_fake_quantisation_are_held_to(args):
    agree("cpu", lambda t, dev: t.fake_quantize_per_tensor_affine(t.ones(2), *args))


NODES = """
x.pow(2);x.pow(x);2**x;x.sum();x.sum(0);x.mean(0);x.prod(0);x.max();x.max(0)[0];x.min()
x.clamp(0, 1);x.clamp(min=0);x.clamp_min(0);2 - x;x[:1].squeeze(0);x.squeeze();x @ x
x @ x[0];x[0] @ x[0];x[None] @ x[None];F.linear(x, x);F.linear(x, x, x[0])
F.linear(x[None], x, x[0]);F.linear(x[None], x);F.cross_entropy(x, t.tensor([0, 1, 2]))
F.max_pool2d(x[None], 2);F.avg_pool2d(x[None], 2);x.log1p();x.trace()
F.binary_cross_entropy_with_logits(x, x.detach());F.celu(x);F.glu(x[:, :2]);t.cdist(x, x)
x.logit();x.square();F.scaled_dot_product_attention(*[x[None, None]] * 3)
F.layer_norm(x, (3,));t.fft.fft(x[0]);x[0].dot(x[0])
F.batch_norm(x, None, None, training=True);t.nn.functional.pdist(x);x.t().reshape(9)
t.lerp(x, x, x)
"""


@pytest.mark.parametrize("call", [c for line in NODES.strip().split("\n") for c in line.split(";")])
def test_nodes_have_torchs_names(call):
    def run(t, dev):
        x = (t.eye(3) + 0.5).requires_grad_()
        y = eval(call, {"x": x, "t": t, "F": t.nn.functional})
        return y.grad_fn.name(), str(y.grad_fn).split(" ")[0]

    agree("cpu", run)


def test_a_profiler_sees_operators_and_what_is_their_own():
    x = mindtorch.ones(8, 8)
    with mindtorch.profiler.profile() as profiler, mindtorch.profiler.record_function("block"):
        (x @ x).relu_().sum()
    averages = {a.key: a for a in profiler.key_averages()}
    assert {"block", "aten::matmul", "aten::relu_", "aten::sum"} <= averages.keys()
    block = averages["block"]
    outer = ("aten::matmul", "aten::relu_", "aten::sum")
    inside = sum(averages[k].cpu_time_total for k in outer)
    assert block.self_cpu_time_total == pytest.approx(block.cpu_time_total - inside)
    table = profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=2)
    assert table.split("\n")[1].split("  ")[-2].strip() == "# of Calls"
    assert len(table.split("\n")) == 8
    plain = mindtorch.ones(2) + 1  # no longer watched
    assert plain.tolist() == [2.0, 2.0]
    assert "aten::add" not in {a.key for a in profiler.key_averages()}


# Calls of which profilers see the same operators as in torch, with the same ones inside.
PROFILED = """
x @ x;x.t() @ x;x[0] @ x[0];(x @ x[0]).sum();x[None] @ x[None];t.stack([x, x])[0] @ x;layer(x)
layer(x[None]);F.linear(x, x);t.addmm(x[0], x, x);F.relu(x);x.softmax(0);F.layer_norm(x, (3,))
F.conv2d(x[None, None], x[None, None]);F.batch_norm(x[None, None], None, None, training=True);x.t()
x.double();x.float();x.clone();x.t().contiguous();x.t().reshape(9);x.contiguous();t.stack([x, x])
t.ones(2);t.zeros(2);t.full((2,), 1.0);t.rand(2);t.randn(2);t.randint(3, (2,));t.randperm(3)
t.empty(2);t.tensor([1.0]);t.arange(3);t.eye(2);t.ones_like(x);t.randn_like(x);t.empty_like(x)
x + 1;x + x;x * 2.0;x.clone().add_(1);x > 0;x.double() * 2.0;x**2;x.sum();x.sum(1);x.mean()
x.mean(1, keepdim=True);x.max();x.max(1);x.argmax(1);x.abs();x.detach();x[0, 0].item();x.split(1)
x.chunk(3);x.unbind();x.clamp(min=0);x.gather(1, x.long());t.embedding(x, x.long());x[x[0].long()]
t.where(x > 0, x, x);x.masked_fill(x > 0, 0.0);x.cumsum(0);t.cat([x, x]);x.uniform_();x.normal_()
"""


@pytest.mark.parametrize("line", PROFILED.strip().split("\n"))
def test_a_profiler_sees_torchs_operators(line):
    def tree(event):
        return [event.name, *map(tree, event.cpu_children)]

    def seen(t):
        scope = {"t": t, "F": t.nn.functional, "layer": t.nn.Linear(3, 2)}
        trees = []
        for call in line.split(";"):
            scope["x"] = t.ones(3, 3)
            with t.profiler.profile() as profiler:
                eval(call, scope)
            trees.append((call, [tree(e) for e in profiler.events() if e.cpu_parent is None]))
        return trees

    agree("cpu", lambda t, dev: seen(t))


def test_a_profiler_sees_nodes_of_the_backward_pass_and_steps_of_optimizers():
    def keys(t):
        layer = t.nn.Linear(3, 2)
        optimizer = t.optim.SGD(layer.parameters(), 0.1)
        with t.profiler.profile() as profiler:
            layer(t.ones(1, 3)).relu().sum().backward()
            optimizer.step()
        return {(a.key, a.count) for a in profiler.key_averages() if "aten::" not in a.key}

    assert keys(mindtorch) == keys(torch)


REFUSED = (
    "t.ones(2, 10).split([3, 3], -1)", "t.ones(2, 10).split([3, 3], 1)",
    "t.profiler.schedule(wait=-1, warmup=0, active=0)", "t.profiler.profile().events()",
    "t.profiler.profile().key_averages()", "t.profiler.profile().stop()",
    "t.profiler.profile().add_metadata('k', 3)", "t.profiler.profile(activities=['cpu'])",
    "t.profiler.profile(bogus=1)", "t.profiler.profile().events().export_stacks('/dev/null', 'x')",
    "t.autograd.profiler.profile(use_cpu=False)", "t.vmap(t.add)(t.ones(2))",
    "t.vmap(t.mul)(t.ones(2))", "t.vmap(lambda r: t.div(r))(t.ones(2))",
    "F.embedding_bag(t.tensor([[0]]), t.ones(2, 2), mode='max', sparse=True)",
    "F.embedding_bag(t.tensor([[0]]), t.ones(2, 2), mode='max', scale_grad_by_freq=True)",
    "F.interpolate(t.ones(1, 1, 4, 4), 2, mode='lanczos')",
    "F.interpolate(t.ones(1, 1, 4, 4), 2, mode='nearest', antialias=True)",
    "F.interpolate(t.ones(1, 1, 4, 4), 2, mode='lanczos', antialias=True, align_corners=True)",
    "F.unfold(t.ones(3), 2)", "F.unfold(t.ones(2, 3), 2)",
    "t.nn.utils.prune.ln_structured(t.nn.Linear(2, 2), 'bias', amount=1, n=2, dim=0)",
    "t.nn.utils.prune.random_structured(t.nn.Linear(2, 2), 'bias', amount=1, dim=0)",
    "t.nn.utils.prune.ln_structured(t.nn.Linear(2, 2), 'weight', amount=1, n=2, dim=5)",
    "t.nn.Sequential(sorted)", "t.nn.Sequential(1)",
    "t.utils._pytree.tree_map(print, {'x': 1, 'z': 2}, {'y': 1, 'z': 2})",
    "t.utils._pytree.tree_map(int, t.ones(2, 2).max(1))",
    # Operands of two dtypes where nothing promotes them: [2, 2] of float64 and of float32.
    *(f"(lambda d, f: {call})(t.ones(2, 2).double(), t.ones(2, 2))" for call in (
        "t.cdist(d, f)", "t.einsum('ij,jk', d, f)", "t.linalg.vecdot(d, f)", "F.prelu(d, f[0])",
        "F.grid_sample(d[None, None], f[None, None], align_corners=True)",
        "F.bilinear(d, f, t.ones(1, 2, 2))", "t.nn.Bilinear(2, 2, 2)(d, d)",
        "d @ f[0]", "f[0] @ d", "d[None] @ f[0]", "t.triangular_solve(f, d)",
        "F.scaled_dot_product_attention(f, d, f)",
        "t.linalg.multi_dot([d, f])", "t.inner(d, f)", "t.lerp(d, f, 0.5)", "t.vdot(d[0], f[0])",
    )),
)  # fmt: skip


@pytest.mark.parametrize("call", REFUSED)
def test_refusals_have_torchs_words(call):
    def run(t, dev):
        for module in ("nn.utils.prune", "utils._pytree"):
            importlib.import_module(f"{t.__name__}.{module}")
        errors = RuntimeError, ValueError, AssertionError, LookupError, TypeError
        with pytest.raises(errors) as refusal:
            eval(call, {"t": t, "F": t.nn.functional})
        return refusal.type.__name__, str(refusal.value)

    agree("cpu", run)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reentrant", [True, False, None])
def test_a_reentrant_checkpoint_of_no_inputs_that_require_grad_records_nothing(reentrant):
    def run(t, dev):
        weight = t.ones(2, requires_grad=True)
        result = t.utils.checkpoint.checkpoint(
            lambda x: x * weight, t.ones(2), use_reentrant=reentrant
        )
        return result.requires_grad

    agree("cpu", run)


def test_names_of_backends_are_among_torchs():
    for tags in ((), ("debug",), ("debug", "experimental")):
        names = mindtorch.compiler.list_backends(exclude_tags=tags)
        assert set(names) <= set(torch.compiler.list_backends(exclude_tags=tags))
        assert "inductor" in names
        assert ("eager" in names) == (not tags)


def test_a_profile_stays_after_its_last_step():
    def run(t, dev):
        plan = t.profiler.schedule(wait=1, warmup=1, active=2)
        with t.profiler.profile(schedule=plan) as profiler:
            for _ in range(4):
                t.ones(2).relu()
                profiler.step()
        counts = [a.count for a in profiler.key_averages() if a.key == "aten::relu"]
        return profiler.step_num, counts

    agree("cpu", run)


@pytest.mark.parametrize("upper", [False, True])
def test_a_matrix_without_a_factor_is_told_on_each_device(dev, upper):
    def run(t, dev):
        bad = t.tensor([[1.0, 2.0], [2.0, 1.0]], device=dev)
        info = t.linalg.cholesky_ex(t.stack([bad, t.eye(2, device=dev)]), upper=upper).info
        return info, t.linalg.cholesky(bad)

    agree(dev, run)
    agree(dev, lambda t, dev: t.linalg.cholesky_ex(-t.eye(3, device=dev)).info)


def test_a_plain_method_takes_functions_over():
    class Log:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func.__name__, len(args), self is args[0]

    agree("cpu", lambda t, dev: (t.add(Log(), 1), t.nn.functional.relu(Log())))


@pytest.mark.parametrize(
    "call",
    [
        lambda t, dev: t.tensor(t.ones(2)),
        lambda t, dev: t.ones(2).storage(),
        lambda t, dev: (t.ones(1, requires_grad=True) * 2).grad,
        lambda t, dev: t.nn.utils.weight_norm(t.nn.Linear(2, 2)),
        lambda t, dev: t.nn.utils.clip_grad_norm(t.ones(1, requires_grad=True), 1.0),
    ],
    ids=["tensor", "storage", "grad", "weight_norm", "clip_grad_norm"],
)
def test_what_torch_deprecates_is_warned_of(call):
    def run(t, dev):
        # Both say this once in a process, and another test may have heard it.
        torch.storage._reset_warn_typed_storage_removal()
        warn_of_removal.cache_clear()
        warn_once._warned.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(t, dev)
        kept = [w for w in caught if "Triggered internally" not in str(w.message)]
        return [
            (w.category.__name__, str(w.message).split("(Triggered")[0]) for w in kept or caught
        ]

    agree("cpu", run)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(
    ("times", "targets", "sizes"),
    [
        ([6, 4, 5], [[1, 2, 2], [3, 1, 0], [3, 0, 0]], [3, 2, 1]),
        ([6, 6, 6], [1, 1, 2, 3], [2, 1, 1]),
        ([6, 2, 3], [[1, 1], [2, 2], [3, 1]], [2, 2, 0]),
    ],
    ids=["padded", "concatenated", "impossible"],
)
def test_sequences_of_a_batch_have_losses_of_their_own(dev, times, targets, sizes, reduction):
    def run(t, dev):
        t.manual_seed(0)
        x = t.randn(6, 3, 4).to(dev).requires_grad_()
        where = t.tensor(targets, device=dev)
        loss = t.nn.functional.ctc_loss(
            x.log_softmax(2), where, t.tensor(times), t.tensor(sizes), 0, reduction, True
        )
        loss.sum().backward()
        return loss.detach(), x.grad

    agree(dev, run)


def test_a_deep_copy_keeps_who_shares_memory_and_how_it_is_laid_out(dev):
    def run(t, dev):
        base = t.arange(6.0, device=dev)
        part, table = base[2:], base.view(2, 3).t()
        layer = t.nn.Linear(2, 2).to(dev)
        mine = copy.deepcopy({"b": base, "p": part, "t": table, "l": layer, "s": [part, table]})
        mine["b"][3] = 50
        layout = [(v.stride(), v.storage_offset()) for v in (mine["p"], mine["t"])]
        return base, mine["p"], mine["t"], mine["s"], layout, mine["p"].untyped_storage().nbytes()

    agree(dev, run)


def test_a_deep_copy_of_a_storage_is_that_of_its_tensor():
    x = mindtorch.arange(3)
    storage, copied = copy.deepcopy([x.untyped_storage(), x])
    copied[0] = 7
    assert storage.tolist()[0] == 7
    assert x[0] == 0


def test_factorizations_tell_which_order_stopped_them(dev):
    def run(t, dev):
        stops = t.tensor([[4.0, 2, 1, 0], [2, 5, 2, 1], [1, 2, -3, 1], [0, 1, 1, 9]], device=dev)
        well, singular = t.eye(3, device=dev) + 1, t.diag(t.tensor([1.0, 0.0, -1.0])).to(dev)
        batch = t.stack([well, singular, well * 2, singular * 0])
        inverse, solved = t.linalg.inv_ex(batch), t.linalg.solve_ex(batch, batch[:, :, :2])
        return (
            *t.linalg.cholesky_ex(stops), *t.linalg.cholesky_ex(stops, upper=True),
            t.linalg.cholesky_ex(t.stack([well, -well])).info, inverse.info, solved.info,
            inverse.inverse[::2].round(decimals=3), solved.result[::2].add(1).round(decimals=3),
        )  # fmt: skip

    agree(dev, run)


@pytest.mark.parametrize("name", ["cholesky_ex", "inv_ex", "solve_ex"])
def test_factorizations_that_check_name_the_failing_matrix(name):
    def run(t):
        batch = t.stack([t.eye(3), t.diag(t.tensor([1.0, 0.0, -1.0]))])
        more = (t.ones(2, 3, 1),) if name == "solve_ex" else ()
        with pytest.raises(t.linalg.LinAlgError) as error:
            getattr(t.linalg, name)(batch, *more, check_errors=True)
        return str(error.value)

    assert run(mindtorch) == run(torch)


def test_gradcheck_looks_at_both_parts_of_complex_numbers():
    def run(t):
        class Wrong(t.autograd.Function):
            @staticmethod
            def forward(ctx, z):
                return z * z.conj() * 1j

            @staticmethod
            def backward(ctx, grad):
                return grad

        z = t.tensor([[1 + 2j, 0.5j], [3 - 1j, 2.0]], dtype=t.complex128, requires_grad=True)
        check = t.autograd.gradcheck
        well = [
            check(lambda q: (q @ q.mH).abs().sum(), z),
            check(lambda q: (q.exp(), q.real), (z,), check_forward_ad=True),
            check(t.fft.rfft, (z.real.detach().requires_grad_(),)),
            t.autograd.gradgradcheck(lambda q: q * q.conj() * q, (z,)),
        ]
        with pytest.raises(RuntimeError) as error:
            check(Wrong.apply, (z,))
        return well, str(error.value)

    assert run(mindtorch) == run(torch)


def test_hooks_of_outside_save_the_inputs_of_a_checkpoint(dev):
    def run(t, dev):
        x = t.arange(3.0, device=dev, requires_grad=True)
        seen, checkpoint = [], t.utils.checkpoint.checkpoint

        def body(a, b, scale):
            return (a.sin() * b).exp() * scale

        def pack(tensor):
            seen.append(tuple(tensor.shape))
            return tensor.detach() + 0

        with t.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
            y = checkpoint(body, x, t.ones(3, device=dev), 2, use_reentrant=False)
        y.sum().backward()
        return seen, x.grad

    agree(dev, run)


def test_a_mask_beside_is_causal_is_refused_where_torch_refuses_it(dev):
    def run(t, dev):
        q = t.ones(1, 2, 4, 8, device=dev)
        answers = []
        shapes = [(4, 4), (1, 4), (1, 2, 4, 4), (2, 4, 4), (4,), (5, 5), (1, 3, 4, 4), ()]
        calls = [(q, q, shape, {}) for shape in shapes]
        calls += [(q[0], q[0], (4, 4), {}), (q, q[..., :4], (4, 4), {}),
                  (q, q, (4, 4), {"dropout_p": 0.1})]  # fmt: skip
        for query, value, shape, options in calls:
            mask = t.ones(shape, device=dev)
            try:
                out = t.nn.functional.scaled_dot_product_attention(
                    query, query, value, mask, is_causal=True, **options
                )
                answers.append(tuple(out.shape))
            except Exception as error:
                answers.append(f"{type(error).__name__}: {error}")
        return answers

    agree(dev, run)


def test_products_of_sparse_matrices_refuse_sizes_in_torchs_words(dev):
    def run(t, dev):
        coo = t.eye(3)[:2].to_sparse().to(dev)
        csr, d, v = coo.to_sparse_csr(), t.ones(2, 2, device=dev), t.ones(2, device=dev)
        pairs = [(coo, d), (csr, d), (coo, coo), (csr, csr), (coo, v), (csr, v)]
        answers = []
        for one, other in pairs:
            with pytest.raises(RuntimeError) as error:
                one @ other
            answers.append(str(error.value))
        return answers

    agree(dev, run)


def test_kernels_give_torchs_warnings():
    def run(t):
        z, x = t.tensor([1 + 2j]), t.ones(1, 1, 4)
        lstm = t.nn.LSTM(2, 3, proj_size=2)
        calls = [
            lambda: z.float(),
            lambda: t.zeros(1).copy_(z),
            lambda: t.nn.functional.conv1d(x, t.ones(1, 1, 2), padding="same"),
            lambda: t.zeros(2).index_reduce(0, t.tensor([0]), t.ones(1), "prod"),
            lambda: lstm(t.ones(1, 1, 2)),
        ]
        answers = []
        t.set_warn_always(True)
        for call in calls:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                call()
            answers.append([str(w.message).partition(" (Triggered")[0] for w in caught])
        t.set_warn_always(False)
        return answers, t.is_warn_always_enabled()

    assert run(mindtorch) == run(torch)


def test_float8_is_stored_and_copied_and_refused_by_what_computes():
    def run(t):
        answers = []
        for name in ("float8_e4m3fn", "float8_e5m2"):
            x = t.tensor([[1.0, -2.0], [0.5, 4.0]]).to(getattr(t, name))
            calls = [
                lambda x=x: x + 1, lambda x=x: x - x, lambda x=x: x / x, lambda x=x: -x,
                lambda x=x: x.abs(), lambda x=x: x.sum(), lambda x=x: x.max(), lambda x=x: x.exp(),
                lambda x=x: x.relu(), lambda x=x: x.sort(), lambda x=x: x**2,
                lambda x=x: x.clone().add_(1), lambda x=x: x.masked_fill(x == x, 0.0),
                lambda x=x: x.cumsum(0), lambda x=x: x.tril(), lambda x=x: x.argmax(),
                lambda x=x: t.rand(2, dtype=x.dtype), lambda x=x: x.sqrt(),
                lambda x=x: x[0], lambda x=x: x.t().contiguous(), lambda x=x: t.cat([x, x]),
                lambda x=x: x.index_select(0, t.tensor([1])), lambda x=x: x == x,
            ]  # fmt: skip
            for call in calls:
                try:
                    answers.append(str(call().float()))
                except Exception as error:
                    answers.append(f"{type(error).__name__}: {error}")
        return answers

    assert run(mindtorch) == run(torch)


@pytest.mark.parametrize("dev", ["cpu", "npu"])
@pytest.mark.parametrize(
    ("name", "settings"),
    [("leaky_relu", (0.1, False)), ("hardtanh", (-1, 1)), ("hardshrink", (0.5,)),
     ("softshrink", (0.5,)), ("hardswish", ()), ("softplus", (1, 20))],
)  # fmt: skip
def test_gradients_of_activations_promote_their_operands(dev, name, settings):
    """Values of the common dtype, also where a condition chooses the gradient or 0."""

    def run(t, device, settings):
        grad = t.tensor([1.0078125, -2.5, 3.0], dtype=t.bfloat16, device=device)
        x = t.tensor([-2.0, 0.1, 3.0], dtype=t.float64, device=device)
        return getattr(t.ops.aten if t is torch else aten, f"{name}_backward")(grad, x, *settings)

    ours = run(mindtorch, dev, settings[:1] if name == "leaky_relu" else settings)
    theirs = run(torch, "cpu", settings)
    assert str(ours.dtype) == str(theirs.dtype)
    assert ours.tolist() == pytest.approx(theirs.tolist())


@pytest.mark.parametrize(
    "draw",
    [
        lambda t, p: t.bernoulli(p),
        lambda t, p: p.bernoulli(),
        lambda t, p: t.poisson(p),
        lambda t, p: t.normal(p, 1.0),
        lambda t, p: t.normal(0.0, p),
        lambda t, p: t.normal(t.zeros(2), p),
        lambda t, p: t.normal(p, p),
        lambda t, p: t.bernoulli(p.detach()),
    ],
)
def test_draws_send_zeros_to_their_parameters(draw):
    def run(t, _):
        p = t.full((2,), 0.5, requires_grad=True)
        draws = draw(t, p)
        if not draws.requires_grad:
            return "no gradient"
        gradient = t.autograd.grad(draws.sum(), p)
        return type(draws.grad_fn).__name__, gradient

    agree("cpu", run)


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "clone"])
def test_products_of_sparse_matrices_have_torchs_nodes(layout):
    def run(t, _):
        matrix = getattr(t.tensor([[1.0, 0.0], [0.0, 2.0]]), layout)()
        x = t.ones(2, 2, requires_grad=True)
        products = [t.mm(matrix, x), matrix @ x, t.mv(matrix, x[0])]
        if layout != "clone":
            products.append(t.sparse.mm(matrix, x))
        return [(type(y.grad_fn).__name__, t.autograd.grad(y.sum(), x)) for y in products]

    agree("cpu", run)


def test_sparse_mm_takes_two_ordinary_matrices():
    agree("cpu", lambda t, _: t.sparse.mm(t.ones(2, 3), t.ones(3, 2)))


def warned(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function()
    return result, [str(w.message).partition("(Triggered")[0].strip() for w in caught]


def states_by_name(t):
    states = importlib.import_module(t.__name__ + ".distributed.checkpoint.state_dict")
    model = t.nn.Linear(2, 1)
    t.nn.init.ones_(model.weight)
    t.nn.init.zeros_(model.bias)
    return states.get_state_dict(model, t.optim.SGD(model.parameters(), 0.1))


def names_registered(t):
    names, module = [], t.nn.modules.module
    hook = module.register_module_parameter_registration_hook(lambda m, n, p: names.append(n))
    t.nn.Linear(2, 2, bias=False)
    hook.remove()
    return names


def leaf(t):
    return t.arange(1.0, 7).view(2, 3).requires_grad_()


@pytest.mark.parametrize(
    "function",
    [
        lambda t: t.vmap(lambda x, scale: x * scale)(leaf(t), scale=leaf(t)).shape,
        lambda t: [t.asarray(leaf(t) * 2, requires_grad=r).requires_grad for r in (False, True)],
        lambda t: warned(lambda: t.asarray(leaf(t)).requires_grad),
        lambda t: t.empty(1, 2, 3).dim_order(ambiguity_check=True),
        lambda t: t.empty(2, 2, 3).expand(2, 2, 3).dim_order(ambiguity_check=True),
        lambda t: t.empty(1, 2, 3, 4).dim_order(ambiguity_check=[t.contiguous_format]),
        lambda t: t.inference_mode()(lambda: t.ones(2))()._version,
        lambda t: t.inference_mode()(lambda: t.nn.GRU(2, 3)(t.ones(1, 2))[0].shape)(),
        names_registered,
        lambda t: warned(lambda: len(t.utils.data.DataLoader(range(4), num_workers=999))),
        states_by_name,
        lambda t: t.distributed.init_process_group("unknown", rank=0, world_size=1),
    ],
)
def test_defaults_and_refusals_that_examples_show_are_torchs(function):
    agree("cpu", lambda t, _: function(t))


@pytest.mark.parametrize(
    "function",
    [
        lambda t: t.cuda.current_device(),
        lambda t: t.cuda.Event(),
        lambda t: t.ones(1, device="xpu"),
        lambda t: t.Generator("cuda"),
        lambda t: t.is_autocast_enabled("nothing"),
        lambda t: warned(lambda: t.autocast("cuda").fast_dtype),
        lambda t: warned(lambda: t.amp.GradScaler().is_enabled()),
        lambda t: warned(lambda: bool(t.profiler.schedule(wait=1, warmup=0, active=1))),
        lambda t: warned(lambda: np.add(t.ones(2), 1)),
        lambda t: [d.to_complex() for d in (t.float16, t.bfloat16, t.float64, t.complex64)],
        lambda t: t.int8.to_complex(),
        lambda t: t.load(saved(t), map_location="cuda"),
        lambda t: block_mask(t),
        lambda t: t.backends.cudnn.enabled,
        lambda t: t._foreach_mul_([t.ones(2)], [2.0]),
        lambda t: t.linalg.inv(t.zeros(2, 2)),
        lambda t: warned(lambda: t.nn.utils.stateless.functional_call(t.nn.Identity(), {}, 2)),
    ],
)
def test_what_is_not_there_is_told_as_by_torch_without_cuda(function):
    agree("cpu", lambda t, _: function(t))


def saved(t):
    file = io.BytesIO()
    t.save(t.ones(1), file)
    file.seek(0)
    return file


def block_mask(t):
    flex = importlib.import_module(t.__name__ + ".nn.attention.flex_attention")

    def window(b, h, q, k):
        return (q >= k) & (q - k < 150)

    mask = flex.create_block_mask(window, None, None, 300, 300, device="cpu")
    x = t.arange(300.0 * 2).view(1, 1, 300, 2) / 100
    result = flex.flex_attention(x, x, x, block_mask=mask)
    return (
        repr(mask),
        mask,
        mask.kv_num_blocks,
        mask.kv_indices,
        mask.full_kv_num_blocks,
        result[0, 0, :3],
    )


def test_derivatives_as_functions_keep_the_history_of_what_they_capture(dev):
    def run(t, dev):
        f = t.func
        z = t.tensor([1.0, 2.0], device=dev)
        u = z.clone().requires_grad_()
        calls = [
            lambda: f.grad(lambda q: (q * q * u).sum())(z),
            lambda: f.grad_and_value(lambda q: (q * q * u).sum())(z)[1],
            lambda: f.vjp(lambda q: q * u, z)[0],
            lambda: f.vjp(lambda q: q * u, z)[1](z)[0],
            lambda: f.jvp(lambda q: q * q * u, (z,), (z,))[1],
            lambda: f.linearize(lambda q: q * u, z)[0],
            lambda: f.jacrev(lambda q: q * q * u)(z),
            lambda: f.hessian(lambda q: (q**3 * u).sum())(z),
            lambda: f.vmap(f.grad(lambda q: (q * q * u).sum()))(z[None]),
            lambda: f.grad(lambda a: f.grad(lambda b: a * b * b)(z[0]))(z[1]),
            lambda: f.hessian(lambda q: (q**3).sum())(z),
            lambda: f.grad(lambda q: (q * 2).sum())(u),
            lambda: f.jacrev(lambda q: (q * q, q + 1), has_aux=True)(z)[1],
        ]
        with t.no_grad():
            yield calls[0]().requires_grad
        for call in calls:
            result = call()
            yield result.requires_grad, result.detach()
            if result.requires_grad:
                yield t.autograd.grad(result.sum(), u)

    agree(dev, lambda t, dev: list(run(t, dev)))


def test_a_module_called_with_tensors_refuses_names_and_takes_new_ones(dev):
    def run(t, dev):
        net = t.nn.Sequential(t.nn.Linear(2, 2)).to(dev)
        net[0].plain = t.ones(2, device=dev)
        names = ["tail.bias", "1.w", "0.in_features", "0.weight.x", "0..weight", "", "0", "0.new"]
        for name in [*names, "0.plain"]:
            seen = []
            handle = net.register_forward_hook(
                lambda m, a, out: seen.append((hasattr(m[0], "new"), m[0].plain.sum().item()))  # noqa: B023
            )
            try:
                t.func.functional_call(net, {name: t.zeros(2, device=dev)}, t.ones(2, device=dev))
            except Exception as error:
                seen.append(f"{type(error).__name__} {str(error).splitlines()[0]}")
            handle.remove()
            yield seen, hasattr(net[0], "new"), net[0].plain.sum().item()

    agree(dev, lambda t, dev: list(run(t, dev)))


def test_a_pruning_that_fails_leaves_the_parameter(dev):
    def run(t, dev):
        prune = t.nn.utils.prune
        layer = t.nn.Linear(3, 3).to(dev)
        for call in (
            lambda: prune.ln_structured(layer, "weight", 1, 2, 3),
            lambda: prune.ln_structured(layer, "weight", 1, 2, -4),
            lambda: prune.l1_unstructured(layer, "weight", 100),
            lambda: prune.random_structured(layer, "bias", 1, 0),
            lambda: prune.custom_from_mask(layer, "weight", t.ones(2, device=dev)),
            lambda: prune.l1_unstructured(layer, "weight", 2),
            lambda: prune.random_structured(layer, "weight", 1, 3),
            lambda: prune.l1_unstructured(layer, "weight", 2),
            lambda: prune.l1_unstructured(layer, "bias", True),
            lambda: prune.identity(layer, "bias"),
            lambda: prune.l1_unstructured(layer, "bias", 1.5),
            lambda: prune.identity(layer, "bias"),
        ):
            try:
                call()
            except Exception as error:
                yield f"{type(error).__name__} {error}".replace("torch.npu.", "torch.")
            yield len(layer._forward_pre_hooks)
            yield list(layer._parameters), list(layer._buffers), hasattr(layer, "weight")

    agree(dev, lambda t, dev: list(run(t, dev)))
