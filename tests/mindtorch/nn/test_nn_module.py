"""Module, Parameter and the containers behave as torch's:
registration, state dicts, hooks, errors."""

import copy
import gc
import pickle
import weakref
from collections import OrderedDict
from typing import Any

import pytest
from nn_differential import torch

import mindtorch

LIBRARIES = (torch, mindtorch)


def both(check: Any) -> tuple[Any, Any]:
    """What `check(library)` gives for torch and for mindtorch; exceptions as (class name, text)."""
    results = []
    for library in LIBRARIES:
        try:
            results.append(check(library))
        except Exception as error:
            results.append((type(error).__name__, str(error).replace("mindtorch.", "torch.")))
    return results[0], results[1]


def small(t: Any) -> Any:
    class Block(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = t.nn.Linear(2, 3)
            self.register_buffer("scale", t.ones(3))
            self.register_buffer("scratch", t.zeros(1), persistent=False)
            self.shared = self.first
            self.off = None

        def forward(self, x: Any) -> Any:
            return self.first(x) * self.scale

    class Net(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = Block()
            self.layers = t.nn.ModuleList([t.nn.Linear(3, 3), t.nn.ReLU()])
            self.gain = t.nn.Parameter(t.tensor(2.0))

        def forward(self, x: Any) -> Any:
            x = self.block(x)
            for layer in self.layers:
                x = layer(x)
            return x * self.gain

    return Net()


def attach(module: Any, name: str, value: Any) -> Any:
    setattr(module, name, value)
    return repr(module)


def loaded(t: Any, state: Any, **kwargs: Any) -> Any:
    return repr(t.nn.Linear(2, 2).load_state_dict(state, **kwargs))


CHECKS: list[Any] = [
    lambda t: repr(small(t)),
    lambda t: [name for name, _ in small(t).named_parameters()],
    lambda t: [name for name, _ in small(t).named_parameters(remove_duplicate=False)],
    lambda t: [name for name, _ in small(t).named_parameters("p", recurse=False)],
    lambda t: [name for name, _ in small(t).named_buffers()],
    lambda t: [name for name, _ in small(t).named_modules()],
    lambda t: [name for name, _ in small(t).named_children()],
    lambda t: list(small(t).state_dict()),
    lambda t: list(small(t).state_dict(prefix="x.")),
    lambda t: dict(small(t).state_dict()._metadata),
    lambda t: [type(v).__name__ for v in small(t).state_dict(keep_vars=True).values()],
    lambda t: [m.training for m in small(t).eval().modules()],
    lambda t: [p.requires_grad for p in small(t).requires_grad_(False).parameters()],
    lambda t: sorted(n for n in dir(small(t)) if n in ("block", "layers", "gain", "0")),
    lambda t: small(t).get_submodule("block.first")._get_name(),
    lambda t: small(t).get_submodule("block.second"),
    lambda t: small(t).get_submodule("block.scale"),
    lambda t: tuple(small(t).get_parameter("block.first.weight").shape),
    lambda t: small(t).get_parameter("block.scale"),
    lambda t: small(t).get_buffer("block.first.weight"),
    lambda t: small(t).get_buffer("block.nothing"),
    lambda t: small(t).set_submodule("block.first", t.nn.ReLU()),
    lambda t: small(t).set_submodule("", t.nn.ReLU()),
    lambda t: attach(t.nn.Linear(2, 2), "weight", t.ones(2)),
    lambda t: attach(t.nn.Linear(2, 2), "weight", None),
    lambda t: attach(t.nn.Sequential(t.nn.ReLU()), "0", 3),
    lambda t: attach(small(t), "block", None),
    lambda t: attach(small(t).block, "scale", 3),
    lambda t: attach(small(t), "gain", t.nn.ReLU()),
    lambda t: t.nn.Linear(2, 2).nothing,
    lambda t: delattr(t.nn.Linear(2, 2), "nothing"),
    lambda t: t.nn.Module().register_parameter("a.b", None),
    lambda t: t.nn.Module().register_parameter("", None),
    lambda t: t.nn.Module().register_parameter("forward", None),
    lambda t: t.nn.Module().register_parameter(3, None),
    lambda t: t.nn.Module().register_parameter("a", 3),
    lambda t: t.nn.Module().register_parameter("a", t.ones(2)),
    lambda t: t.nn.Module().register_buffer("a", 3),
    lambda t: t.nn.Linear(2, 2).register_buffer("weight", None),
    lambda t: t.nn.Module().add_module("a.b", None),
    lambda t: t.nn.Module().add_module("a", 3),
    lambda t: t.nn.Module()(3),
    lambda t: t.nn.Module(3),
    lambda t: t.nn.Module(a=3),
    lambda t: t.nn.Linear(2, 2).train(3),
    lambda t: t.nn.Linear(2, 2).to(t.int64),
    lambda t: t.nn.Linear(2, 2).to("cpu", t.float32, 1, 2, 3),
    lambda t: str(t.nn.Linear(2, 2).to(t.float64).weight.dtype),
    lambda t: str(t.nn.Linear(2, 2).half().bias.dtype),
    lambda t: str(t.nn.BatchNorm1d(2).double().num_batches_tracked.dtype),
    lambda t: str(t.nn.Linear(2, 2, device="meta").weight.device),
    lambda t: str(t.nn.Linear(2, 2, dtype=t.float64).weight.dtype),
    lambda t: loaded(t, 3),
    lambda t: loaded(t, {}),
    lambda t: loaded(t, {}, strict=False),
    lambda t: loaded(t, {"weight": t.ones(2, 2), "bias": t.ones(2)}),
    lambda t: loaded(t, {"weight": t.ones(3, 2), "bias": t.ones(2), "more.a": t.ones(2)}),
    lambda t: loaded(t, {"weight": t.ones(3, 2), "x": t.ones(2)}, strict=False),
    lambda t: loaded(t, {"weight": 3, "bias": t.ones(2)}),
    lambda t: loaded(t, {"weight": t.ones(2, 2), "bias": t.ones(2), "_extra_state": 3}),
    lambda t: repr(t.nn.Sequential(OrderedDict(a=t.nn.ReLU(), b=t.nn.Tanh()))),
    lambda t: repr(t.nn.Sequential(t.nn.ReLU(), t.nn.Tanh(), t.nn.GELU())[1:]),
    lambda t: repr(t.nn.Sequential(t.nn.ReLU())[3]),
    lambda t: repr(t.nn.Sequential(t.nn.ReLU()) + t.nn.Sequential(t.nn.Tanh())),
    lambda t: t.nn.Sequential(t.nn.ReLU()) + 3,
    lambda t: repr(t.nn.Sequential(t.nn.ReLU()) * 3),
    lambda t: t.nn.Sequential(t.nn.ReLU()) * 0,
    lambda t: repr(t.nn.Sequential(t.nn.ReLU()).append(t.nn.Tanh()).insert(0, t.nn.GELU())),
    lambda t: repr(t.nn.Sequential(t.nn.ReLU(), t.nn.Tanh()).pop(0)),
    lambda t: t.nn.Sequential(t.nn.ReLU()).insert(7, t.nn.ReLU()),
    lambda t: repr(t.nn.ModuleList([t.nn.ReLU() for _ in range(3)] + [t.nn.Tanh()])),
    lambda t: repr(t.nn.ModuleList([t.nn.ReLU(), t.nn.Tanh()])[-1]),
    lambda t: repr(t.nn.ModuleList([t.nn.ReLU(), t.nn.Tanh()])[:1]),
    lambda t: t.nn.ModuleList([t.nn.ReLU()])[1],
    lambda t: t.nn.ModuleList(3),
    lambda t: repr(t.nn.ModuleList([t.nn.ReLU()]).__add__([t.nn.Tanh()])),
    lambda t: repr(t.nn.ModuleList()),
    lambda t: repr(t.nn.ModuleDict({"a": t.nn.ReLU(), "b": t.nn.Tanh()})),
    lambda t: list(t.nn.ModuleDict([("a", t.nn.ReLU())]).keys()),
    lambda t: t.nn.ModuleDict([("a",)]),
    lambda t: t.nn.ModuleDict(3),
    lambda t: repr(t.nn.ModuleDict({"a": t.nn.ReLU()}).pop("a")),
    lambda t: "a" in t.nn.ModuleDict({"a": t.nn.ReLU()}),
    lambda t: t.nn.ModuleDict({"pop": t.nn.ReLU()}),
    lambda t: repr(t.nn.ParameterList([t.ones(2), t.nn.Parameter(t.ones(3))])),
    lambda t: list(t.nn.ParameterList([t.ones(2)] * 2).state_dict()),
    lambda t: t.nn.ParameterList([t.ones(2)])[3],
    lambda t: repr(t.nn.ParameterDict({"a": t.ones(2), "b": 3})),
    lambda t: list(t.nn.ParameterDict({"b": t.ones(2), "a": t.ones(2)}).state_dict()),
    lambda t: t.nn.ParameterDict({"a": t.ones(2)}).get("c", 4),
    lambda t: repr(t.nn.Parameter(t.ones(2))),
    lambda t: isinstance(t.nn.Parameter(t.ones(2)), t.Tensor),
    lambda t: t.nn.Parameter(t.ones(2)).requires_grad,
    lambda t: t.nn.Parameter(t.ones(2), requires_grad=False).requires_grad,
    lambda t: type(t.nn.Parameter(t.ones(2)) * 2).__name__,
    lambda t: type(t.nn.Parameter(t.ones(2)).data).__name__,
    lambda t: tuple(t.nn.Parameter().shape),
    lambda t: isinstance(t.nn.Buffer(t.ones(2)), t.nn.Buffer),
    lambda t: isinstance(t.ones(2), t.nn.Parameter),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("i", range(len(CHECKS)))
def test_answers_and_refusals_are_torchs(i: int) -> None:
    expected, found = both(CHECKS[i])
    assert found == expected


def copied(net: Any) -> Any:
    from nn_differential import across

    return across(dict(net.state_dict()))


def test_a_state_dict_travels_between_the_libraries() -> None:
    theirs, mine = small(torch), small(mindtorch)
    assert repr(mine.load_state_dict(copied(theirs))) == "<All keys matched successfully>"
    x = [[0.5, -1.0]]
    expected = theirs(torch.tensor(x)).tolist()[0]
    assert mine(mindtorch.tensor(x)).tolist()[0] == pytest.approx(expected, rel=1e-5)


def test_assign_adopts_the_given_tensors() -> None:
    net = mindtorch.nn.Linear(2, 2, device="meta")
    weight = mindtorch.ones(2, 2)
    net.load_state_dict({"weight": weight, "bias": mindtorch.zeros(2)}, assign=True)
    assert net.weight.device.type == "cpu"
    assert isinstance(net.weight, mindtorch.nn.Parameter)
    assert net.weight.data_ptr() == weight.data_ptr()


def test_loading_writes_into_the_parameters_that_are_there() -> None:
    net = mindtorch.nn.Linear(2, 2)
    before = net.weight
    net.load_state_dict({"weight": mindtorch.ones(2, 2), "bias": mindtorch.zeros(2)})
    assert net.weight is before
    assert before.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_to_keeps_the_parameter_objects() -> None:
    net = mindtorch.nn.Linear(2, 2)
    before, bias = net.weight, net.bias
    before.grad = mindtorch.ones(2, 2)
    net.to(mindtorch.float64)
    assert net.weight is before
    assert net.bias is bias
    assert before.grad.dtype == mindtorch.float64


def test_deepcopy_copies_values_and_keeps_ties() -> None:
    net = small(mindtorch)
    twin = copy.deepcopy(net)
    assert twin.block.shared is twin.block.first
    assert twin.block.first.weight is not net.block.first.weight
    assert twin.block.first.weight.tolist() == net.block.first.weight.tolist()
    assert list(twin.state_dict()) == list(net.state_dict())


def test_a_module_survives_pickling() -> None:
    net = mindtorch.nn.Sequential(mindtorch.nn.Linear(2, 3), mindtorch.nn.BatchNorm1d(3))
    again = pickle.loads(pickle.dumps(net))
    assert repr(again) == repr(net)
    assert isinstance(again[0].weight, mindtorch.nn.Parameter)
    assert again[0].weight.tolist() == net[0].weight.tolist()


def test_apply_visits_children_first() -> None:
    seen: list[str] = []
    small(mindtorch).apply(lambda m: seen.append(m._get_name()))
    assert seen[-1] == "Net"
    assert seen[0] == "Linear"


def test_an_assigned_buffer_is_registered() -> None:
    net = mindtorch.nn.Module()
    net.kept = mindtorch.nn.Buffer(mindtorch.ones(2))
    net.passing = mindtorch.nn.Buffer(mindtorch.ones(2), persistent=False)
    assert [name for name, _ in net.named_buffers()] == ["kept", "passing"]
    assert list(net.state_dict()) == ["kept"]
    net.kept = mindtorch.zeros(2)
    assert net.state_dict()["kept"].tolist() == [0.0, 0.0]


def test_forward_hooks_see_and_replace_arguments_and_results() -> None:
    def check(t: Any) -> Any:
        net = t.nn.Identity()
        seen = []
        net.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
        net.register_forward_hook(lambda m, args, out: out * 10)
        handle = net.register_forward_hook(lambda m, args, out: seen.append(out.tolist()))
        first = net(t.tensor([1.0])).tolist()
        handle.remove()
        net(t.tensor([1.0]))
        return first, seen

    expected, found = both(check)
    assert found == expected == ([20.0], [[20.0]])


def test_hooks_with_keywords_see_them() -> None:
    class Scale(mindtorch.nn.Module):
        def forward(self, x: Any, by: float = 1.0) -> Any:
            return x * by

    net = Scale()
    net.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True
    )
    seen = []
    net.register_forward_hook(
        lambda m, args, kwargs, out: seen.append(kwargs), with_kwargs=True, prepend=True
    )
    assert net(mindtorch.tensor([2.0]), by=3.0).tolist() == [8.0]
    assert seen == [{"by": 4.0}]


def test_a_pre_hook_with_keywords_must_give_a_pair() -> None:
    net = mindtorch.nn.Identity()
    net.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple of"):
        net(1)


def test_always_called_hooks_run_after_an_error() -> None:
    class Fails(mindtorch.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("forward failed")

    net, seen = Fails(), []
    net.register_forward_hook(lambda m, args, out: seen.append("plain"))
    net.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    with pytest.raises(ValueError, match="forward failed"):
        net(1)
    assert seen == [None]


def test_global_hooks_run_for_every_module_until_removed() -> None:
    from mindtorch.nn.modules.module import register_module_forward_hook

    seen: list[str] = []
    with register_module_forward_hook(lambda m, args, out: seen.append(m._get_name())):
        mindtorch.nn.Sequential(mindtorch.nn.Identity())(1)
    mindtorch.nn.Identity()(1)
    assert seen == ["Identity", "Sequential"]


def backward_trace(t: Any) -> Any:
    net = t.nn.Linear(2, 1, bias=False)
    with t.no_grad():
        net.weight.copy_(t.tensor([[2.0, 3.0]]))
    seen: list[Any] = []
    net.register_full_backward_pre_hook(lambda m, g: (g[0] * 10,))
    net.register_full_backward_hook(
        lambda m, gin, gout: seen.append((gin[0].tolist(), gout[0].tolist()))
    )
    net.register_full_backward_hook(lambda m, gin, gout: (gin[0] + 1,))
    x = t.ones(1, 2, requires_grad=True)
    net(x).sum().backward()
    return seen, x.grad.tolist(), net.weight.grad.tolist()


def test_full_backward_hooks_see_and_replace_gradients() -> None:
    expected, found = both(backward_trace)
    assert found == expected


def test_backward_hooks_run_when_no_input_needs_a_gradient() -> None:
    def check(t: Any) -> Any:
        net, seen = t.nn.Linear(1, 1, bias=False), []
        net.register_full_backward_hook(lambda m, gin, gout: seen.append((gin, len(gout))))
        net(t.ones(1, 1)).sum().backward()
        return [(list(gin), n) for gin, n in seen]

    expected, found = both(check)
    assert found == expected


def test_state_dict_hooks_run() -> None:
    net = mindtorch.nn.Linear(1, 1)
    seen: list[str] = []
    net.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append("pre"))
    net.register_state_dict_post_hook(lambda m, state, prefix, meta: state.pop("bias") and None)
    net.register_load_state_dict_pre_hook(lambda m, state, *rest: seen.append("load pre"))
    net.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    state = net.state_dict()
    assert list(state) == ["weight"]
    net.load_state_dict(state)
    assert seen == ["pre", "load pre"]


def test_a_load_hook_goes_with_copies_and_keeps_no_module_alive() -> None:
    gc.disable()
    try:
        net, seen = mindtorch.nn.Linear(1, 1), []
        net.register_load_state_dict_pre_hook(lambda m, *rest: seen.append(m))
        twin = copy.deepcopy(net)
        twin.load_state_dict(net.state_dict())
        assert seen == [twin]
        reference = weakref.ref(net)
        del net
        assert reference() is None
    finally:
        gc.enable()


def test_extra_state_is_saved_and_loaded() -> None:
    class Counted(mindtorch.nn.Module):
        count = 0

        def get_extra_state(self) -> Any:
            return {"count": self.count}

        def set_extra_state(self, state: Any) -> None:
            self.count = state["count"]

    net = Counted()
    net.count = 5
    other = Counted()
    other.load_state_dict(net.state_dict())
    assert other.count == 5
    assert list(net.state_dict()) == ["_extra_state"]


@pytest.mark.parametrize("kind", ["Parameter", "Module", "Buffer"])
def test_attributes_need_the_base_constructor(kind: str) -> None:
    class Early(mindtorch.nn.Module):
        def __init__(self) -> None:
            made = getattr(mindtorch.nn, kind)
            self.x = made() if kind == "Module" else made(mindtorch.ones(1))

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Early()


def test_zero_grad_drops_gradients() -> None:
    net = mindtorch.nn.Linear(1, 1)
    net.weight.grad = mindtorch.ones(1, 1)
    net.zero_grad(set_to_none=False)
    assert net.weight.grad.tolist() == [[0.0]]
    net.zero_grad()
    assert net.weight.grad is None
