"""Parameters without a shape, converted, swapped and loaded: as torch does it, on cpu and npu."""

import copy
import io
import pickle
import warnings

import pytest

import mindtorch

torch = pytest.importorskip("torch", reason="the oracle is torch 2.13")


def told(lib, device, program):
    """What a program gives, and the warnings it meets."""
    shown = []

    def tell(call):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                shown.append(str(call()))
            except Exception as error:
                shown.append(f"{type(error).__name__}: {error}")
        shown.extend(f"{w.category.__name__}: {w.message}" for w in caught)

    program(lib, device, tell)
    return [line.replace(f", device='{device}:0'", "") for line in shown]


def agree(dev, program):
    assert told(mindtorch, dev, program) == told(torch, "cpu", program)


def test_parameters_that_come_from_meta_or_go_there_are_new(dev):
    def program(t, dev, tell):
        def tied(device):
            net = t.nn.Sequential(t.nn.Linear(2, 2, device=device), t.nn.Linear(2, 2))
            net[1].weight = net[0].weight
            return net

        for net, move in (
            (tied("meta"), lambda n: n.to_empty(device=dev)),
            (tied(None), lambda n: n.to("meta")),
            (tied(None), lambda n: n.half()),
        ):
            before = net[0].weight
            before.grad = t.ones_like(before)
            move(net)
            tell(lambda b=before, n=net: (n[0].weight is b, n[1].weight is n[0].weight))
            tell(lambda b=before, n=net: (b.grad is None, n[0].weight.grad.is_meta))

    agree(dev, program)


def test_a_parameter_without_a_shape_refuses_to_compute(dev):
    def program(t, dev, tell):
        lazy = t.nn.LazyLinear(3).to(dev)
        p = lazy.weight
        for call in (lambda: p.shape, lambda: p.numel(), lambda: p.half().dtype, lambda: p.dtype,
                     lambda: p.is_floating_point(), lambda: p):  # fmt: skip
            tell(call)
        tell(lambda: [type(v).__name__ for v in lazy.state_dict().values()])
        lazy.load_state_dict(t.nn.Linear(2, 3).state_dict())
        tell(lambda: lazy(t.ones(1, 2, device=dev)).shape)
        plain = t.nn.Linear(2, 3)
        tell(lambda: plain.load_state_dict(t.nn.LazyLinear(3).state_dict()))

    agree(dev, program)


@pytest.mark.parametrize("flag", ["none", "swap", "overwrite"])
def test_a_converted_parameter(dev, flag):
    def program(t, dev, tell):
        if flag != "none":
            getattr(t.__future__, f"set_{flag}_module_params_on_conversion")(True)
        try:
            module = t.nn.Linear(2, 2)
            before = module.weight
            module.weight.grad = t.ones(2, 2)
            module.half()
            tell(lambda: (module.weight is before, before.dtype, module.weight.grad.dtype))
            other = t.nn.Linear(2, 2).half()
            tell(lambda: module.load_state_dict(other.state_dict()))
            tell(lambda: t.equal(module.weight, other.weight))
            tell(lambda: module.load_state_dict(other.state_dict(), assign=True))
            tell(lambda: (t.equal(module.weight, other.weight), module.weight.requires_grad))
            tell(lambda: module.load_state_dict({"weight": t.ones(3, 2), "bias": t.ones(2)}))
        finally:
            if flag != "none":
                getattr(t.__future__, f"set_{flag}_module_params_on_conversion")(False)

    agree(dev, program)


def test_values_do_not_arrive_on_meta(dev):
    def program(t, dev, tell):
        with t.device("meta"):
            module = t.nn.Linear(2, 1)
        state = {"weight": t.ones(1, 2, device=dev), "bias": t.ones(1, device=dev)}
        tell(lambda: module.load_state_dict(state))
        tell(lambda: module.weight.is_meta)
        tell(lambda: module.load_state_dict(state, assign=True))
        tell(lambda: module.weight)

    agree(dev, program)


def test_weights_of_convolutions_alone_change_their_memory_format(dev):
    def program(t, dev, tell):
        net = t.nn.Sequential(t.nn.Conv2d(2, 3, 2), t.nn.Conv3d(2, 3, 2), t.nn.Linear(2, 2)).to(dev)
        tell(lambda: t.nn.utils.convert_conv2d_weight_memory_format(net, t.channels_last) is net)
        tell(lambda: t.nn.utils.convert_conv3d_weight_memory_format(net, t.channels_last_3d))
        tell(lambda: [p.stride() for p in net.parameters()])

    agree(dev, program)


def test_clipping_nothing_warns_for_a_generator(dev):
    def program(t, dev, tell):
        tell(lambda: t.nn.utils.clip_grad_norm_((p for p in ()), 1.0))
        tell(lambda: t.nn.utils.clip_grad_norm_([], 1.0))

    agree(dev, program)


def test_pickled_and_copied_objects(dev):
    def program(t, dev, tell):
        whole = t.arange(12.0, device=dev).view(3, 4)
        for part in (whole.t()[1:3], whole[::2], whole[1, 1], t.empty(0, 3, device=dev)):
            loaded = pickle.loads(pickle.dumps(part))
            tell(lambda p=part, a=loaded: (a, a.stride() == p.stride(), a.storage_offset(),
                                           a.untyped_storage().nbytes()))  # fmt: skip
        for kind in (t.strided, t.jagged, t.preserve_format, t.per_tensor_affine, t.float16):
            tell(lambda k=kind: (copy.deepcopy(k) is k, pickle.loads(pickle.dumps(k)) is k))
        for limits in (t.finfo(t.float16), t.iinfo(t.int8)):
            tell(lambda x=limits: pickle.dump(x, io.BytesIO()))

    agree(dev, program)


def test_words_for_deterministic_algorithms(dev):
    def program(t, dev, tell):
        for mode in ("loud", 7, None):
            tell(lambda m=mode: t.set_deterministic_debug_mode(m))

    agree(dev, program)
