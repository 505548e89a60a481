"""Storages do what torch's do: casts, indices, buffers, files, legacy classes and their errors."""

import copy
import pickle
import sys
import warnings

import pytest

from tests.mindtorch.agreement import agree

CASTS = (
    "double", "float", "half", "long", "int", "short", "char", "byte", "bool", "bfloat16",
    "complex_double", "complex_float", "float8_e5m2", "float8_e4m3fn",
)  # fmt: skip
# Expressions of torch, `s` (int32 storage of 1, 2, 3), `u` (four bytes), `b` (eight) and `path`.
EXPRESSIONS = """
s.type() | type(s.type('torch.FloatStorage')) | s.type('nope') | s.type(torch.int64) | s.is_cuda
s.get_device() | s.filename | s.pickle_storage_type() | s.resizable() | s.cpu() is s | s.to('cpu')
s.clone().tolist() | s.resize_(5) | s.fill_(7).tolist() | s.hpu() | s[1] | s[-1] | s[3] | s[::2]
s['a'] | s.__setitem__('a', 1) | s.__setitem__(9, 1) | [s.__setitem__(0, 9), s.tolist()]
[s.__setitem__(slice(1, 3), 4), s.tolist()] | s.copy_(torch.TypedStorage([1], dtype=torch.int32))
s.copy_(torch.TypedStorage([3, 2, 1], dtype=torch.int32)).tolist() | s.untyped().nbytes()
u.byteswap(torch.int16) | [u.byteswap(torch.int32), u.tolist()] | u.is_sparse_csr | u.to('cpu')
u.type() | type(u.new()).__name__ | len(u.new()) | u.mps() | u.to(device='cpu') is u
torch.FloatStorage(3).fill_(2.0) | type(torch.FloatStorage(3)) | torch.FloatStorage([1, 2.5])
isinstance(s, torch.IntStorage) | isinstance(s, torch.FloatStorage) | torch.IntStorage.dtype
torch.FloatStorage(1, 2) | torch.FloatStorage(2, dtype=torch.int8) 
torch.FloatStorage(wrap_storage=2)
torch.TypedStorage(wrap_storage=u) | torch.TypedStorage(1, 2) | torch.TypedStorage({})
torch.TypedStorage(2, dtype=torch.float32, wrap_storage=u) | torch.FloatStorage(2, device='cpu')
torch.IntStorage.from_buffer(b, 'native', 1, 4).tolist() | torch.IntStorage.from_buffer(b)
torch.IntStorage.from_buffer(b, 'big').tolist() | torch.IntStorage.from_buffer(b, 'up')
torch.IntStorage.from_buffer(b, 'native', 3) | torch.IntStorage.from_buffer(b, 'native', -1, 9)
torch.IntStorage.from_buffer(b[:7], 'native') | torch.BoolStorage.from_buffer(b[:2], 'big').tolist()
torch.BoolStorage.from_buffer(b)
torch.UntypedStorage.from_buffer(b, 'big', dtype=torch.int16).tolist()
torch.IntStorage.from_file(path, False, 2).tolist() | torch.TypedStorage.from_file(path, False, 2)
torch.UntypedStorage.from_file(path, True, 8).filename == path
pickle.loads(pickle.dumps(s)).tolist()
torch.ones(2).storage_type() | torch.ones(2).const_data_ptr() == 0 | torch.LongTensor.is_sparse
torch.LongTensor.sum(torch.ones(2)) | torch.LongTensor.layout | torch.LongTensor.nothing
torch.TypedStorage([1, 2], device='meta', dtype=torch.int16) | s.to('meta') | u.to(device='meta')
u.__copy__().tolist() | type(copy.copy(u)).__name__ | sys.getsizeof(u) > 4
torch.tensor(s) | torch.tensor(s, dtype=torch.int64) | torch.ones(2).set_(s)
torch.empty(2, device='meta').storage()[0] | torch.empty(2, device='meta').storage().tolist()
torch.empty(2, device='meta').storage().__setitem__(0, 1)
torch.slice_inverse(torch.ones(3), torch.ones(2)) | torch.ones(2).sparse_resize_((2,), 1, 0)
""".replace("\n", " | ").split(" | ")


@pytest.mark.parametrize("text", [text.strip() for text in EXPRESSIONS if text.strip()])
def test_storages_and_legacy_classes_answer_as_torchs(text, tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(8)))

    def run(torch):
        names = {
            "torch": torch, "pickle": pickle, "copy": copy, "sys": sys,
            "path": str(path), "b": bytearray(b"abcdefgh"),
            "s": torch.TypedStorage([1, 2, 3], dtype=torch.int32),
            "u": torch.UntypedStorage([0, 1, 2, 3]),
        }  # fmt: skip
        try:
            value = eval(text, names)
        except Exception as error:
            value = type(error).__name__, str(error).split(" the operator")[0].split("\n")[0]
        return str(value).replace("mindtorch", "torch").replace("_StorageBase", "UntypedStorage")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(run)


@pytest.mark.parametrize("name", CASTS)
def test_a_cast_of_a_storage_is_a_storage_of_that_type(name):
    def run(torch):
        typed = torch.TypedStorage([1, 0, 3], dtype=torch.int32)
        casts = [getattr(each, name)() for each in (typed, torch.UntypedStorage([1, 0, 3]))]
        return [(str(c.dtype), c.tolist(), type(c).__name__) for c in casts]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(run)


def test_a_storage_writes_to_its_tensor_and_a_copy_does_not():
    def run(torch):
        x = torch.arange(4.0)
        storage = x._typed_storage()
        storage[1] = 7
        copied = storage.__copy__()
        copied.fill_(0)
        return x, storage == copied

    agree(run)
