"""Dispatch: registered kernels, custom ops, key guards, plans, threads."""

import threading
import traceback

import numpy as np
import pytest

import mindtorch as torch
from mindtorch import library
from mindtorch._backends.npu.binding import Binder
from mindtorch._backends.registry import MissingKernelError, registry
from mindtorch._dispatch.keys import (
    DispatchKey,
    ExcludeDispatchKeyGuard,
    IncludeDispatchKeyGuard,
    keyset,
)
from mindtorch._tensor.geometry import geometry
from mindtorch.ops.spec import OPS, DuplicateOpError


@pytest.fixture
def custom():
    """Declares an op for one test."""
    names = []

    def define(name, **fields):
        names.append(name)
        rule = lambda self: self.fresh()  # noqa: E731
        kernel = lambda self: self**3  # noqa: E731
        return library.define(f"{name}(Tensor self) -> Tensor", infer=rule, cpu=kernel, **fields)

    yield define
    for name in names:
        forget(name)


def forget(name):
    """Take back an op that was defined, with what was published of it."""
    del OPS[name]
    delattr(torch.Tensor, name)
    torch._functional.publish.FUNCTIONS.pop(name)
    vars(torch).pop(name, None)


@pytest.fixture
def cube(custom):
    return custom("cube_for_tests", grad={"self": lambda grad, self: grad * self * self * 3})


def test_registered_kernel_takes_over_and_gives_back():
    registry.register("add", "cpu", lambda a, b, alpha: torch.mul(a, b))
    try:
        assert (torch.full((2,), 3.0) + torch.full((2,), 5.0)).tolist() == [15.0, 15.0]
    finally:
        registry.unregister("add", "cpu")
    assert (torch.full((2,), 3.0) + torch.full((2,), 5.0)).tolist() == [8.0, 8.0]


def test_registered_kernel_is_differentiated_by_the_row():
    def multiply(a, b):
        return torch.from_numpy(a.detach().numpy() * b.detach().numpy())

    registry.register("mul", "cpu", multiply)
    try:
        x = torch.tensor([2.0, 3.0], requires_grad=True)
        (x * x).sum().backward()
    finally:
        registry.unregister("mul", "cpu")
    assert x.grad.tolist() == [4.0, 6.0]


def test_custom_op_has_function_method_gradient_and_meta(cube):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    torch.cube_for_tests(x).sum().backward()
    assert x.grad.tolist() == [12.0, 27.0]
    assert x.cube_for_tests().tolist() == [8.0, 27.0]
    assert torch.ones(2, device="meta").cube_for_tests().shape == (2,)


def test_custom_op_second_gradient(cube):
    x = torch.tensor([2.0], requires_grad=True)
    (g,) = torch.autograd.grad(x.cube_for_tests().sum(), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [12.0]


def test_custom_op_takes_kernels_per_device(cube):
    library.register_kernel("cube_for_tests", "cpu", lambda t: torch.from_numpy(np.zeros(2, "f4")))
    try:
        assert torch.ones(2).cube_for_tests().tolist() == [0.0, 0.0]
    finally:
        registry.unregister("cube_for_tests", "cpu")


def test_missing_kernel_names_op_device_and_what_exists():
    library.define("only_meta_for_tests(Tensor self) -> Tensor", infer=lambda self: self)
    try:
        with pytest.raises(MissingKernelError, match=r"only_meta_for_tests.*CPU.*meta"):
            torch.ones(1).only_meta_for_tests()
    finally:
        forget("only_meta_for_tests")


def test_second_op_of_one_name_is_refused(cube):
    with pytest.raises(DuplicateOpError, match="cube_for_tests"):
        library.define("cube_for_tests(Tensor self) -> Tensor")


@pytest.mark.parametrize("arguments", [("tests::square", "(Tensor x) -> Tensor"),
                                       ("tests::square(Tensor x) -> Tensor",)])  # fmt: skip
def test_a_name_with_a_namespace_takes_no_field(arguments):
    with pytest.raises(TypeError, match=r"tests::square.*unexpected cpu, inferr"):
        library.define(*arguments, cpu=abs, inferr=abs)


def test_an_unknown_field_of_a_row_is_refused():
    with pytest.raises(TypeError, match="inferr"):
        library.define("square_for_tests(Tensor x) -> Tensor", inferr=abs)


def test_keyset_is_the_union_of_backends_and_layers():
    assert keyset(torch.ones(1)) == DispatchKey.CPU | DispatchKey.Autograd
    with torch.functionalize():
        assert DispatchKey.Functionalize in keyset(torch.ones(1, device="meta"))
    with ExcludeDispatchKeyGuard(DispatchKey.Autograd):
        assert keyset(torch.ones(1)) == DispatchKey.CPU


def test_excluding_autograd_records_nothing():
    x = torch.ones(2, requires_grad=True)
    with ExcludeDispatchKeyGuard(DispatchKey.Autograd):
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_including_functionalize_runs_the_pure_op():
    t = torch.zeros(4)
    with IncludeDispatchKeyGuard(DispatchKey.Functionalize):
        t[1:].add_(1)
    assert t.tolist() == [0.0, 1.0, 1.0, 1.0]


def test_geometries_are_interned():
    a, b = torch.ones(2, 3), torch.zeros(2, 3)
    assert a._geom is b._geom
    assert a.t()._geom is not a._geom


def test_full_geometry_table_costs_no_correctness(monkeypatch):
    monkeypatch.setattr("mindtorch._tensor.geometry._LIMIT", 8)
    a = torch.ones(3)
    for n in range(40):
        assert torch.ones(n + 1).sum().item() == n + 1
    assert (a + torch.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert a._geom == a._geom
    assert geometry((3,), (1,), 0, a.dtype, a.device).shape == (3,)


def test_numbers_of_one_class_share_a_plan_and_keep_their_values():
    t = torch.ones(2)
    assert [(t * v).tolist()[0] for v in (2.0, -0.0, 3.5)] == [2.0, -0.0, 3.5]
    assert str((t * -0.0).tolist()[0]) == "-0.0"
    assert (t * True).dtype is torch.float32
    assert (torch.ones(2, dtype=torch.int64) * 1).dtype is torch.int64
    assert (torch.ones(2, dtype=torch.int64) * 1.0).dtype is torch.float32


def test_threads_share_plans_safely():
    errors = []

    def work(n):
        try:
            for i in range(200):
                x = torch.full((n, 1 + i % 7), 2.0, requires_grad=True)
                (x * x).sum().backward()
                assert x.grad.tolist()[0][0] == 4.0
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_grad_mode_is_per_thread():
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
        seen.append(torch.is_grad_enabled())
    assert seen == [True, False]


def test_backward_through_one_graph_from_two_threads():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    losses = [(y * n).sum() for n in (1.0, 2.0)]
    threads = [threading.Thread(target=lambda a=a: a.backward(retain_graph=True)) for a in losses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [6.0, 6.0, 6.0]


def test_a_row_without_a_derivative_refuses_in_torch_s_words_each_time(custom):
    row = custom("cubed_without_gradient")
    x = torch.ones(3, requires_grad=True)
    for _ in range(3):
        y = row.entry("aten")(x)
        with pytest.raises(RuntimeError, match="derivative for aten::cubed_without_gradient is no"):
            y.sum().backward()


def test_lists_get_their_gradients_after_arguments_that_are_none():
    a, b = torch.ones(2, requires_grad=True), torch.ones(3)
    c = torch.ones(1, requires_grad=True)
    (torch.cat([a, b, c]) * torch.arange(6.0)).sum().backward()
    assert a.grad.tolist() == [0.0, 1.0]
    assert c.grad.tolist() == [5.0]


def test_a_traceback_shows_the_text_that_was_written_for_an_op():
    x = torch.ones(2, requires_grad=True).exp()
    x.sum().backward()
    with pytest.raises(RuntimeError) as caught:
        x.sum().backward()
    text = "".join(traceback.format_exception(caught.value))
    assert "<mindtorch backward exp>" in text
    assert "raise RuntimeError(FREED)" in text


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_a_default_number_left_and_given_others_have_plans_of_their_own(device):
    a, b = torch.tensor([1.0, 2.0], device=device), torch.tensor([4.0, 8.0], device=device)
    for _ in range(2):
        assert torch.add(a, b).tolist() == [5.0, 10.0]
        assert torch.add(a, b, alpha=2).tolist() == [9.0, 18.0]
        assert torch.add(a, b, alpha=1.0).tolist() == [5.0, 10.0]
        assert torch.add(a, b, alpha=0.5).tolist() == [3.0, 6.0]
        assert a.clone().sub_(b, alpha=3).tolist() == [-11.0, -22.0]
        assert a.clone().sub_(b).tolist() == [-3.0, -6.0]
    with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results"):
        torch.add(a, b, alpha=True)


def test_numbers_that_change_at_each_call_bind_once(monkeypatch):
    """A schedule's numbers make new C plans; only the first looks at the row and the header."""
    from mindtorch._backends.npu.binding import Binder

    x, y = torch.ones(3, 7, device="npu"), torch.full((3, 7), 2.0, device="npu")
    bound = []
    bind = Binder.bind
    monkeypatch.setattr(Binder, "bind", lambda *args: bound.append(args) or bind(*args))
    results = [x.addcdiv(y, y, value=n / 8).sum().item() for n in range(1, 6)]
    assert results == [21 * (1 + n / 8) for n in range(1, 6)]
    assert len([args for args in bound if args[0].op.name == "addcdiv"]) == 1


def test_a_kernel_that_calls_ops_and_threads_that_meet_in_kernels_stay_quiet(custom):
    custom("nested_for_tests")
    registry.register("nested_for_tests", "cpu", lambda self: (self / 0).log() + self)

    def work():
        with np.errstate(all="raise"):
            for _ in range(200):
                results.append(torch.ones(2000).nested_for_tests().isinf().all().item())

    results = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    registry.unregister("nested_for_tests", "cpu")
    assert results == [True] * 800


@pytest.mark.parametrize(
    "call",
    [
        lambda p, g, n: p.addcdiv_(g, g, value=n), lambda p, g, n: p.addcmul_(g, g, value=n),
        lambda p, g, n: p.lerp_(g, n), lambda p, g, n: p.add_(g, alpha=n),
        lambda p, g, n: p.mul_(n), lambda p, g, n: p.add_(n), lambda p, g, n: p / n,
        lambda p, g, n: torch.addcdiv(p, g, g, value=n),
        lambda p, g, n: p > n, lambda p, g, n: torch.nn.functional.leaky_relu(p, n),
    ],
)  # fmt: skip
def test_other_numbers_bind_no_call_again(call, monkeypatch):
    """An optimizer's numbers change with each step: only the scalars of its plans are made anew."""
    bound = []
    bind = Binder.bind
    p, g = torch.ones(3, device="npu"), torch.full((3,), 2.0, device="npu")
    call(p, g, 0.25)
    monkeypatch.setattr(
        Binder, "bind", lambda *args, **named: bound.append(1) or bind(*args, **named)
    )
    for step in range(5):
        call(p, g, 0.5 + step)
    assert not bound
