"""Copies from one device to another: gradients come back to where they are wanted, numbers fit."""

import pytest

import mindtorch


@pytest.mark.parametrize(("source", "target"), [("cpu", "npu"), ("npu", "cpu"), ("cpu", "cpu")])
def test_the_gradient_of_a_copy_is_on_the_sources_device(source, target):
    x = mindtorch.ones(3, device=source, requires_grad=True)
    y = mindtorch.zeros(2, 3, dtype=mindtorch.float64, device=target)
    y.copy_(x)
    gradient = mindtorch.autograd.grad((y * 2).sum(), x)[0]
    assert (gradient.device.type, gradient.dtype) == (source, mindtorch.float32)
    assert gradient.tolist() == [4.0, 4.0, 4.0]


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_a_number_is_copied_to_every_element(device):
    x = mindtorch.zeros(2, 2, device=device)
    assert x.copy_(3.5).tolist() == [[3.5, 3.5], [3.5, 3.5]]
    z = mindtorch.tensor([1 + 0j, 5 + 0j], device=device)
    z.real = 2
    assert z.tolist() == [2, 2]


def test_a_conversion_by_dtype_then_device_is_refused_as_in_torch():
    with pytest.raises(TypeError, match=r"got \(torch.dtype, torch.device\)"):
        mindtorch.ones(2).to(mindtorch.float64, mindtorch.device("cpu"))


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_a_storage_changes_its_size_under_its_tensors(device):
    x = mindtorch.arange(6.0).to(device)
    tail, storage = x[4:], x.untyped_storage()
    before = storage.clone()
    storage.fill_(0)
    assert x.sum() == 0
    assert before.tolist() == before.cpu().tolist() != storage.tolist()
    storage.copy_(before)
    storage.resize_(0)
    assert storage.nbytes() == 0
    assert x.shape == (6,)
    storage.resize_(24)
    x.copy_(mindtorch.arange(6.0))
    storage.resize_(48)
    assert tail.tolist() == [4.0, 5.0]
    assert len(storage) == 48


MIXED = {
    "mm": (lambda a, b, m: a.mm(b), "got mat2 is on cpu, different from other tensors on npu:0"),
    "cat": (lambda a, b, m: mindtorch.cat([b, a]), "got tensors is on npu:0, .* tensors on cpu"),
    "gather": (lambda a, b, m: a.gather(0, b.long()), r"in method wrapper_NPU__gather\)$"),
    "add": (lambda a, b, m: a + b, "found at least two devices, npu:0 and cpu!"),
    "sizes first": (lambda a, b, m: a + b[0, :1].expand(3), r"size of tensor a \(2\) must match"),
    "masks first": (lambda a, b, m: mindtorch.where(b, a, a), "to be a boolean tensor"),
    "values first": (lambda a, b, m: a.masked_fill_(m, b), "only supports a 0-dimensional value"),
    "cpu's mask": (lambda a, b, m: a.masked_fill(m.cpu(), 1), "got mask on cpu and self on npu:0"),
}


@pytest.mark.parametrize("case", MIXED)
def test_tensors_of_two_devices_are_refused_by_the_name_that_torch_gives(case):
    call, message = MIXED[case]
    a, b = mindtorch.eye(2, device="npu"), mindtorch.eye(2)
    with pytest.raises(RuntimeError, match=message):
        call(a, b, a > 0)


def test_a_value_without_dimensions_may_be_the_cpus():
    x = mindtorch.zeros(2, 2, device="npu")
    mask = mindtorch.eye(2, device="npu") > 0
    value = mindtorch.tensor(3.0, requires_grad=True)
    filled = x.masked_fill(mask, value)
    filled.sum().backward()
    assert (filled.tolist(), value.grad.item()) == ([[3.0, 0.0], [0.0, 3.0]], 2.0)
    assert x.masked_fill_(mask, mindtorch.tensor(2)).tolist() == [[2.0, 0.0], [0.0, 2.0]]


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_a_memory_format_that_torch_suggests_already_copies_nothing(device):
    x = mindtorch.ones(2, 3, 1, 6, device=device).expand(2, 3, 6, 6)
    contiguous = mindtorch.contiguous_format
    assert x.to(memory_format=contiguous) is x
    images = x.to(memory_format=mindtorch.channels_last)
    assert images.to(memory_format=contiguous).stride() == (108, 36, 6, 1)
    lone = images[:, :1].clone(memory_format=mindtorch.channels_last)
    assert lone.to(memory_format=contiguous).stride() == (36, 36, 6, 1)
