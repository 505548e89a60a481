"""Classes made by `_make_wrapper_subclass` see operators by `__torch_dispatch__`, as torch's."""

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def wrapper(lib, calls, switched_off=False):
    tree_map = lib.utils._pytree.tree_map

    class Scaled(lib.Tensor):
        """Integers with one scale: computed on as floats."""

        if switched_off:
            __torch_function__ = lib._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls, codes, scale):
            return lib.Tensor._make_wrapper_subclass(
                cls, codes.shape, dtype=lib.float32, device=codes.device
            )

        def __init__(self, codes, scale):
            self.codes, self.scale = codes, scale

        def __repr__(self, *, tensor_contents=None):
            return f"Scaled({self.codes.tolist()}, {self.scale})"

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            calls.append(str(func))
            if func is lib.ops.aten.detach.default:
                return cls(args[0].codes, args[0].scale)

            def plain(value):
                return value.codes * value.scale if isinstance(value, Scaled) else value

            return func(*tree_map(plain, args), **tree_map(plain, kwargs or {}))

    return Scaled(lib.tensor([[1, 2], [3, -4]], dtype=lib.int8), 0.5)


def story(lib, switched_off):
    calls = []
    x = wrapper(lib, calls, switched_off)
    yield repr(x), tuple(x.shape), str(x.dtype).rpartition(".")[2], x.stride()
    for function in (
        lambda: x + 1,
        lambda: lib.ones(2, 2) @ x,
        lambda: lib.nn.functional.relu(x),
        lambda: lib.nn.functional.linear(lib.ones(1, 2), x),
        lambda: x.sum(-1),
        lambda: lib.nn.functional.linear(lib.ones(3, 1, 2), x, lib.ones(2)),
        lambda: lib.softmax(x, 0),
        lambda: lib.ones_like(x),
        lambda: lib.ones(2, 2).mul_(x),
        lambda: lib.where(lib.tensor(True), x, lib.zeros(2, 2)),
        lambda: x.t() @ lib.ones(2),
        lambda: x[0],
        lambda: x[1:2],
        lambda: x[:, 1:],
        lambda: x.half().float(),
        lambda: x.sum(0, keepdim=True),
        lambda: x.data + 1,
        lambda: lib.nn.Parameter(x, requires_grad=False) + 1,
        lambda: x[:, lib.tensor([1, 0])],
        lambda: x[lib.tensor([[True, False], [True, True]])],
        lambda: x > 1,
        lambda: x != lib.ones(2, 2),
    ):
        yield function().tolist()
    yield x.data_ptr()
    yield calls


@pytest.mark.parametrize("switched_off", [False, True])
def test_operators_on_a_wrapper_reach_its_class(switched_off):
    assert list(story(mindtorch, switched_off)) == list(story(torch, switched_off))


def test_the_data_of_a_wrapper_is_a_wrapper():
    for lib in (mindtorch, torch):
        x = wrapper(lib, [])
        assert type(x.data) is type(x)
        assert type(lib.nn.Parameter(x, requires_grad=False).data) is type(x)


def test_a_module_has_what_the_class_makes_of_its_parameter_s_copy():
    """Not the tensors that the wrapper held before under the dtype of the copy."""
    net = mindtorch.nn.Linear(2, 2, bias=False)
    net.weight = mindtorch.nn.Parameter(wrapper(mindtorch, []), requires_grad=False)
    expected = net(mindtorch.ones(1, 2)).half()
    net.half()
    assert net.weight.dtype is mindtorch.float16
    assert not net.weight.requires_grad
    assert mindtorch.equal(net(mindtorch.ones(1, 2, dtype=mindtorch.float16)), expected)


def test_copies_are_asked_for_what_they_change():
    def story(lib):
        seen = []

        def dispatch(cls, func, types, args=(), kwargs=None):
            seen.append((str(func), sorted(kwargs or {})))
            return lib.ones(2)

        kind = type("Kind", (lib.Tensor,), {"__torch_dispatch__": classmethod(dispatch)})
        x = lib.Tensor._make_wrapper_subclass(kind, (2,))
        for copy in (lambda: x.half(), lambda: x.to("meta"), lambda: x.to("meta", lib.half)):
            copy()
        return seen

    assert story(mindtorch) == story(torch)


def test_a_wrapper_needs_its_method_and_a_dtype_of_gradients():
    for lib in (mindtorch, torch):
        make = lib.Tensor._make_wrapper_subclass
        with pytest.raises(TypeError, match="must define __torch_dispatch__"):
            make(type("Bare", (lib.Tensor,), {}), (2,))
        kind = type("Kind", (lib.Tensor,), {"__torch_dispatch__": None})
        with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype"):
            make(kind, (2,), dtype=lib.int64, requires_grad=True)


def logging(lib):
    tree = lib.utils._pytree

    class Logging(lib.Tensor):
        """A tensor around another, whose operators are noted; gradients are its own."""

        calls: list[str] = []

        @staticmethod
        def __new__(cls, inner, requires_grad=False):
            return lib.Tensor._make_wrapper_subclass(
                cls, inner.shape, strides=inner.stride(), dtype=inner.dtype,
                device=inner.device, requires_grad=requires_grad,
            )  # fmt: skip

        def __init__(self, inner, requires_grad=False):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.calls.append(str(func))
            args, kwargs = tree.tree_map_only(cls, lambda t: t.inner, (args, kwargs or {}))
            return tree.tree_map_only(lib.Tensor, cls, func(*args, **kwargs))

    return Logging


def gradients(lib):
    """Types, gradients and operators of backward passes through wrappers."""
    kind, nn, tanh = logging(lib), lib.nn.functional, lib.tanh
    w = kind(lib.arange(6.0).view(3, 2) / 4 - 1, requires_grad=True)
    x = lib.ones(2, 3, requires_grad=True)
    for function in (
        lambda: nn.linear(w, lib.ones(4, 2)).tanh(),
        lambda: x @ w,
        lambda: (w * 2).relu()[:, 0],
        lambda: nn.cross_entropy(w, lib.tensor([0, 1, 1])),
        lambda: nn.layer_norm(w, (2,)),
        lambda: nn.gelu(w).softmax(-1).mean(),
        lambda: w.exp().t().unsqueeze(0),
        lambda: lib.where(w > 0, w, 0).view(-1),
    ):
        w.grad = x.grad = None
        kind.calls.clear()
        y = function()
        y.sum().backward()
        yield type(y).__name__, type(y.grad_fn).__name__, type(w.grad).__name__, w.is_leaf
        yield lib.round(w.grad.inner, decimals=4).tolist(), list(kind.calls)
    checkpoint = lib.utils.checkpoint.checkpoint
    for function in (lib.exp, lambda w: w * w, lambda w: checkpoint(tanh, w, use_reentrant=False)):
        w.grad = None
        kind.calls.clear()
        function(w).backward(lib.ones(3, 2))  # a gradient that is none
        calls = [call for call in kind.calls if "detach" not in call]
        yield lib.round(w.grad.inner, decimals=4).tolist(), calls
    double = lib.tensor([0.5, -1.0], dtype=lib.float64)
    yield lib.autograd.gradcheck(lambda t: kind(double) * t.exp(), double.clone().requires_grad_())
    layer = lib.nn.Linear(2, 2)
    layer.weight = lib.nn.Parameter(kind(lib.eye(2)))
    layer(lib.ones(1, 2)).sum().backward()
    lib.optim.SGD([layer.weight], lr=0.5).step()
    yield isinstance(layer.weight, lib.nn.Parameter), layer.weight.inner.tolist()
    with pytest.raises(RuntimeError) as error:
        w.add_(1)
    yield str(error.value)
    with lib.no_grad():
        yield (w * 2).requires_grad


def test_gradients_of_wrappers_are_wrappers():
    for ours, expected in zip(gradients(mindtorch), gradients(torch), strict=True):
        assert ours == expected


def test_numbers_are_read_through_the_class():
    def story(lib):
        def dispatch(cls, func, types, args=(), kwargs=None):
            return 3.0 if "dense" in str(func) else NotImplemented

        kind = type("Kind", (lib.Tensor,), {"__torch_dispatch__": classmethod(dispatch)})
        x = lib.Tensor._make_wrapper_subclass(kind, (1,))
        said = [x.item(), float(x), int(x)]
        for read in (x.tolist, x.numpy):
            with pytest.raises(RuntimeError) as error:
                read()
            said.append(str(error.value))
        return said

    assert story(mindtorch) == story(torch)


def corrected(lib):
    """What `return_and_correct_aliasing` and its kin make of a class that keeps its own kind."""
    tools, tree = lib.utils._python_dispatch, lib.utils._pytree

    class Kept(lib.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return lib.Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride())

        def __init__(self, inner):
            self.inner = inner

        def __tensor_flatten__(self):
            return ["inner"], None

        @classmethod
        def __tensor_unflatten__(cls, inner, context, size, stride):
            return cls(inner["inner"])

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            plain = tree.tree_map_only(Kept, lambda k: k.inner, (args, kwargs or {}))
            out = tree.tree_map_only(lib.Tensor, Kept, func(*plain[0], **plain[1]))
            return tools.return_and_correct_aliasing(func, args, kwargs, out)

    x, t = Kept(lib.arange(6.0).view(2, 3)), lib.ops.aten.t.default
    yield x.add_(1) is x, x.inner.tolist(), x.trace().inner.tolist()
    for view in (x.view(6), x.t(), x.unbind(0)[1], x.split(1)[1], x[0], x.detach()):
        yield type(view).__name__, view.inner.tolist()
    yield tools.transform_subclass(x, lambda name, inner: inner * 2).inner.tolist()
    for bad in (
        lambda: tools.transform_subclass(x, lambda name, inner: inner[0]),
        lambda: tools.transform_subclass(x, lambda name, inner: inner.t().contiguous().t()),
        lambda: tools.return_and_correct_aliasing(t, (x,), {}, lib.ones(3, 2)),
        lambda: tools.return_and_correct_aliasing(t, [x], {}, x),
        lambda: lib.Tensor._make_wrapper_subclass(Kept),
    ):
        with pytest.raises((AssertionError, TypeError)) as error:
            bad()
        yield str(error.value).partition("and output")[0].replace("mindtorch", "torch")
    aten = lib.ops.aten
    for overload in (aten.detach.default, aten.t_.default, aten.add_.Tensor, aten.add.Tensor):
        returned = overload._schema.returns[0]
        yield str(overload._schema), overload.is_view, returned.is_write
    with tools.BaseTorchDispatchMode() as mode:
        with tools._disable_current_modes() as modes:
            yield modes == [mode], tools._get_current_dispatch_mode(), x.sum().inner.item()
        yield tools._get_current_dispatch_mode() is mode, tools.is_in_torch_dispatch_mode(False)


def test_views_and_writes_of_a_wrapper_are_corrected():
    assert list(corrected(mindtorch)) == list(corrected(torch))
