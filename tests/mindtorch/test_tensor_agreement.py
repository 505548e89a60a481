"""Creation, conversion, views and storage behave as torch's do."""

import copy
import pickle

import numpy as np
import pytest
from agreement import agree


class Items:
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return [1.0, 2.0][index]


class Interface:
    __array_interface__ = np.arange(3.0).__array_interface__

    def __array__(self, dtype=None, copy=None):
        return np.arange(3.0)


class Counted:
    def __index__(self):
        return 3


class Shared:
    def __init__(self, t):
        self.tensor = t.ones(2)

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def read(t, value):
    """What each way to make a tensor of a value gives, or its error."""
    for make in (t.tensor, t.as_tensor, t.asarray, lambda v: t.tensor([v]), t.FloatTensor,
                 lambda v: t.tensor(v, dtype=t.float32), lambda v: t.ones(1).new_tensor(v)):  # fmt: skip
        try:
            yield make(value)
        except Exception as error:
            yield f"{type(error).__name__} {error}"


CASES = {
    "of items": lambda t: list(read(t, Items())),
    "of an array's interface": lambda t: list(read(t, Interface())),
    "of bytes": lambda t: list(read(t, bytearray(b"12"))),
    "of what has a dlpack": lambda t: [t.tensor(Shared(t)), t.as_tensor(Shared(t))],
    "of a list of arrays without dims": lambda t: list(read(t, [np.array(1.5), 2])),
    "of numpy's text": lambda t: t.tensor(np.str_("a")),
    "of more than 64 bits": lambda t: [t.tensor([1, 10**30], dtype=t.float32), t.tensor(10**30, dtype=t.complex64)],
    "numbers of storages": lambda t: [len({s._cdata for s in (x.untyped_storage(), x[1:].untyped_storage(), t.ones(1).untyped_storage())}) for x in [t.ones(2)]],
    "of an index": lambda t: [t.FloatTensor(Counted()).shape, t.Tensor(np.int64(2)).shape],
    "tensor of ints": lambda t: t.tensor([1, 2]),
    "tensor of floats": lambda t: t.tensor([1.0, 2]),
    "tensor of bools": lambda t: t.tensor([True, False]),
    "tensor of complex": lambda t: t.tensor([1 + 2j]),
    "tensor of nothing": lambda t: t.tensor([]),
    "nested": lambda t: t.tensor([[1, 2], [3, 4]]),
    "empty nested": lambda t: t.tensor([[], []]),
    "ragged": lambda t: t.tensor([[1, 2], [3]]),
    "of a string": lambda t: t.tensor("a"),
    "of numpy float64": lambda t: t.tensor(np.array([1.0])),
    "of a numpy scalar": lambda t: t.tensor(np.float64(1.5)),
    "of numpy scalars": lambda t: t.tensor([np.float32(1.5), np.float32(2)]),
    "of tensors": lambda t: t.tensor([t.tensor(1.0), t.tensor(2.0)]),
    "of a number": lambda t: t.tensor(3),
    "with dtype": lambda t: t.tensor([1.7, 2], dtype=t.int32),
    "zeros forms": lambda t: [t.zeros(2, 3), t.zeros((2, 3)), t.zeros([2]), t.zeros(()), t.zeros(size=(2,))],
    "negative size": lambda t: t.zeros(-1),
    "full": lambda t: [t.full((2,), 1), t.full((2,), 1.0), t.full((2,), True), t.full((2,), 1, dtype=t.float16)],
    "arange": lambda t: [t.arange(5), t.arange(2, 8, 3), t.arange(0, 1, 0.25), t.arange(5.0), t.arange(3, dtype=t.int32)],
    "arange backwards": lambda t: t.arange(5, 0, -2),
    "arange wrong": lambda t: t.arange(5, 0),
    "arange zero step": lambda t: t.arange(0, 5, 0),
    "likes": lambda t: [t.zeros_like(t.ones(2, 3).t()), t.ones_like(t.ones(2, dtype=t.int64)), t.full_like(t.ones(2), 7)],
    "news": lambda t: [t.ones(2, dtype=t.int64).new_zeros(3), t.ones(1).new_ones((2, 2)), t.ones(1).new_full((2,), 3.5), t.ones(1).new_tensor([1, 2])],
    "as_tensor": lambda t: t.as_tensor([1.5, 2]),
    "from_numpy strided": lambda t: t.from_numpy(np.arange(12.0).reshape(3, 4)[:, ::2]),
    "from_numpy negative stride": lambda t: t.from_numpy(np.arange(3.0)[::-1]),
    "from_numpy of a list": lambda t: t.from_numpy([1]),
    "to keeps itself": lambda t: [(x := t.ones(2)).to(t.float32) is x, x.to("cpu") is x, x.float() is x, x.to(x) is x],
    "to forms": lambda t: [t.ones(2).to(t.int64), t.ones(2).to("cpu", t.float16), t.ones(2).to(dtype=t.bool), t.ones(2).to(t.ones(1, dtype=t.int8))],
    "type names": lambda t: [t.ones(1).type(), t.ones(1, dtype=t.int64).type(), t.ones(1).type(t.int32), t.ones(1).type("torch.DoubleTensor")],
    "item": lambda t: [t.tensor(1).item(), t.tensor([2.5]).item(), t.tensor(True).item()],
    "item of many": lambda t: t.ones(2).item(),
    "bool of many": lambda t: bool(t.ones(2)),
    "bool of none": lambda t: bool(t.ones(0)),
    "numbers": lambda t: [int(t.tensor(2.7)), float(t.tensor(2)), bool(t.tensor(0)), [10, 20][t.tensor(1)]],
    "index of a float": lambda t: [10, 20][t.tensor(1.0)],
    "tolist": lambda t: [t.ones(2, 2).tolist(), t.tensor(1).tolist(), t.ones(0, 2).tolist()],
    "numpy shares": lambda t: [(x := t.zeros(3)), x.numpy().__setitem__(0, 5), x],
    "numpy of grad": lambda t: t.ones(1, requires_grad=True).numpy(),
    "numpy of bfloat16": lambda t: t.ones(1, dtype=t.bfloat16).numpy(),
    "len and iteration": lambda t: [len(t.ones(3, 2)), [r.tolist() for r in t.ones(2, 2)]],
    "len of scalar": lambda t: len(t.tensor(1)),
    "iteration of scalar": lambda t: list(t.tensor(1)),
    "size and stride": lambda t: [t.ones(2, 3).size(), t.ones(2, 3).size(-1), t.ones(2, 3).stride(0), t.ones(2, 3).dim(), t.ones(2, 3).numel(), t.ones(2, 3).nelement()],
    "size out of range": lambda t: t.ones(2).size(1),
    "contiguity": lambda t: [t.ones(2, 3).t().is_contiguous(), t.ones(2, 3).t().contiguous(), t.ones(2, 1).t().is_contiguous()],
    "clone keeps strides": lambda t: [t.ones(2, 3).t().clone(), t.ones(4, 4)[::2, ::2].clone(), t.ones(3, 1).expand(3, 4).clone()],
    "view": lambda t: [t.arange(6).view(2, 3), t.arange(6).view(-1, 2), t.arange(6).view((3, 2)), t.arange(6).view(size=(6, 1))],
    "view of strided": lambda t: t.ones(2, 3).t().view(6),
    "view of wrong size": lambda t: t.ones(6).view(4),
    "view of two unknowns": lambda t: t.ones(6).view(-1, -1),
    "view of nothing": lambda t: t.ones(0).view(-1, 0),
    "view as dtype": lambda t: [t.ones(2).view(t.int32), t.ones(2).view(t.int16), t.ones(4, dtype=t.int16).view(t.int32)],
    "reshape copies": lambda t: [(x := t.arange(6).view(2, 3)).t().reshape(6), x.reshape(3, 2)],
    "transpose": lambda t: [t.ones(2, 3).transpose(0, 1), t.ones(2, 3).T, t.ones(2, 3, 4).mT, t.ones(2, 3).t()],
    "transpose out of range": lambda t: t.ones(2).transpose(0, 1),
    "permute": lambda t: [t.ones(2, 3, 4).permute(2, 0, 1), t.ones(2, 3).permute((1, 0)), t.permute(t.ones(2, 3), (1, 0))],
    "permute twice the same": lambda t: t.ones(2, 3).permute(0, 0),
    "permute of wrong length": lambda t: t.ones(2, 3).permute(0),
    "squeeze": lambda t: [t.ones(2, 1, 3, 1).squeeze(), t.ones(2, 1, 3).squeeze(1), t.ones(2, 1).squeeze(0), t.ones(1, 1).squeeze((0, 1)), t.ones(2, 1).squeeze(dim=1)],
    "unsqueeze": lambda t: [t.ones(2, 3).unsqueeze(0), t.ones(2, 3).unsqueeze(-1), t.ones(2, 3).t().unsqueeze(1)],
    "unsqueeze out of range": lambda t: t.ones(2).unsqueeze(3),
    "expand": lambda t: [t.ones(3, 1).expand(3, 4), t.ones(3).expand(2, -1), t.ones(1).expand(0), t.ones(1, 3).expand((2, 3))],
    "expand wrong": lambda t: t.ones(3).expand(2),
    "expand too few": lambda t: t.ones(3, 1).expand(3),
    "narrow": lambda t: [t.arange(6).narrow(0, 1, 3), t.arange(6).narrow(0, -2, 2)],
    "narrow too far": lambda t: t.arange(6).narrow(0, 4, 3),
    "select": lambda t: [t.ones(2, 3).select(1, -1), t.select(t.ones(2, 3), 0, 1)],
    "select out of range": lambda t: t.ones(2, 3).select(0, 2),
    "diagonal": lambda t: [t.arange(12).view(3, 4).diagonal(), t.arange(12).view(3, 4).diagonal(1), t.arange(24).view(2, 3, 4).diagonal(-1, 1, 2)],
    "unfold": lambda t: t.arange(7).unfold(0, 3, 2),
    "unfold too large": lambda t: t.arange(3).unfold(0, 5, 1),
    "as_strided": lambda t: t.arange(9).as_strided((2, 2), (3, 1), 1),
    "split": lambda t: [t.arange(5).split(2), t.arange(5).split([2, 3]), t.split(t.ones(4, 2), 3), t.ones(2, 4).split(2, dim=1)],
    "split of wrong sizes": lambda t: t.arange(5).split([2, 2]),
    "chunk": lambda t: [t.arange(5).chunk(3), t.ones(2, 4).chunk(2, -1)],
    "unbind": lambda t: [t.arange(6).view(2, 3).unbind(), t.arange(6).view(2, 3).unbind(1)],
    "movedim": lambda t: [t.ones(2, 3, 4).movedim(0, -1), t.ones(2, 3, 4).movedim((0, 1), (2, 0)), t.ones(2, 3).swapaxes(0, 1)],
    "flatten": lambda t: [t.ones(2, 3, 4).flatten(), t.ones(2, 3, 4).flatten(1), t.tensor(1).flatten(), t.ones(2, 3).flatten(start_dim=1)],
    "unflatten": lambda t: t.ones(2, 12).unflatten(1, (3, -1)),
    "copy_": lambda t: [t.zeros(2, 3).copy_(t.ones(3)), t.zeros(2, dtype=t.int64).copy_(t.tensor([1.7, 2.2]))],
    "copy_ wrong": lambda t: t.zeros(2).copy_(t.ones(3)),
    "fill_ and zero_": lambda t: [t.ones(2).fill_(3), t.ones(2, dtype=t.int64).fill_(2.7), t.ones(2).zero_()],
    "resize_": lambda t: [t.ones(4).resize_(2, 2), t.ones(4).resize_((3,))],
    "out": lambda t: [t.add(t.ones(2), t.ones(2), out=t.empty(2)), t.add(t.ones(2), t.ones(2), out=t.empty(0)), t.add(t.ones(2), 1, out=t.empty(2, dtype=t.float64))],
    "out of wrong dtype": lambda t: t.add(t.ones(2), 1.5, out=t.empty(2, dtype=t.int64)),
    "out and grad": lambda t: t.add(t.ones(2, requires_grad=True), 1, out=t.empty(2)),
    "expanded write": lambda t: t.zeros(1).expand(3).add_(1),
    "in place broadcast": lambda t: t.zeros(2, 3).add_(t.ones(3)),
    "in place too small": lambda t: t.zeros(3).add_(t.ones(2, 3)),
    "shapes do not match": lambda t: t.ones(2, 3) + t.ones(2),
    "matmul shapes do not match": lambda t: t.ones(2, 3) @ t.ones(2, 3),
    "matmul of scalars": lambda t: t.tensor(1.0) @ t.tensor(1.0),
    "matmul of dtypes": lambda t: t.ones(2, 2) @ t.ones(2, 2, dtype=t.float64),
    "add of a list": lambda t: t.add(t.ones(2), [1, 2]),
    "operator with a list": lambda t: t.ones(2) + [1, 2],  # noqa: RUF005
    "operator with None": lambda t: t.ones(2) + None,
    "sum forms": lambda t: [t.ones(2, 3).sum(), t.ones(2, 3).sum(1), t.ones(2, 3).sum(dim=(0, 1)), t.ones(2, 3).sum(0, keepdim=True), t.ones(2, dtype=t.bool).sum(), t.ones(2).sum(dtype=t.float64), t.ones(2, 3).sum(axis=1)],
    "sum out of range": lambda t: t.ones(2).sum(1),
    "sum twice": lambda t: t.ones(2, 2).sum((0, 0)),
    "sum unknown keyword": lambda t: t.ones(2).sum(foo=1) and None,
    "versions": lambda t: [(x := t.ones(3)), x.add_(1)._version, x[0:1].mul_(2)._version, x._version],
    "is_view and base": lambda t: [(x := t.ones(4))[1:]._is_view(), x[1:]._base is x, x[1:][1:]._base is x, x._base],
    "deepcopy": lambda t: [copy.deepcopy(t.ones(2, requires_grad=True)), copy.deepcopy(t.arange(4)[1:3])],
    "deepcopy of non-leaf": lambda t: copy.deepcopy(t.ones(2, requires_grad=True) * 2),
    "pickle": lambda t: pickle.loads(pickle.dumps(t.arange(6).view(2, 3).t())),
    "devices": lambda t: [str(t.ones(1).device), str(t.ones(1, device="meta").device), t.device("cpu") == t.device("cpu"), t.device("cpu").type, t.device("meta").index],
    "meta": lambda t: [(t.ones(2, 3, device="meta") @ t.ones(3, 4, device="meta")), t.ones(2, device="meta").sum()],
    "meta item": lambda t: t.ones(1, device="meta").item(),
    "mixed devices": lambda t: t.ones(2) + t.ones(2, device="meta"),
    "finfo": lambda t: [t.finfo(t.float16).max, t.finfo(t.bfloat16).eps, t.finfo(t.float32).tiny, t.finfo(t.float64).min, t.iinfo(t.int8).max, t.finfo(t.float32).bits, t.finfo(t.float32).dtype],
    "dtype facts": lambda t: [t.float16.itemsize, t.bool.is_signed, t.uint8.is_signed, t.complex64.is_complex, t.int8.is_floating_point, repr(t.half), str(t.long)],
    "legacy constructors": lambda t: [t.Tensor(2, 3).shape, t.Tensor([1, 2]), t.FloatTensor([1]), t.LongTensor([1, 2]), t.BoolTensor([True]), t.Tensor().shape],
    "equality of None": lambda t: t.ones(1).__eq__(None) is NotImplemented,
    "isinstance": lambda t: [isinstance(t.ones(1), t.Tensor), t.is_tensor(t.ones(1)), t.is_tensor(1)],
    "properties": lambda t: [t.ones(2).itemsize, t.ones(2).nbytes, t.ones(2).element_size(), t.ones(2).is_leaf, t.ones(2).ndim, t.ones(2).storage_offset(), t.ones(3)[1:].storage_offset(), t.ones(2).get_device()],
    "sub of bools": lambda t: t.ones(2, dtype=t.bool) - t.ones(2, dtype=t.bool),
    "alpha": lambda t: [t.add(t.ones(2), t.ones(2), alpha=3), t.ones(2).sub(1, alpha=2.5), t.ones(2, dtype=t.int64).add_(1, alpha=2)],
    "alpha of wrong kind": lambda t: t.ones(2, dtype=t.int64).add(1, alpha=1.5),
    "functions by keyword": lambda t: [t.add(input=t.ones(1), other=2), t.transpose(t.ones(2, 3), dim0=0, dim1=1), t.sum(input=t.ones(2), dim=0)],
    "layout and format": lambda t: [str(t.ones(1).layout), str(t.contiguous_format), t.ones(1, 2, 3, 3).is_contiguous(memory_format=t.channels_last)],
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_tensor_agrees_with_torch(name):
    agree(CASES[name], text=name != "sum unknown keyword")
