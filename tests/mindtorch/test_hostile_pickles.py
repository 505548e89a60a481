"""Files of tensors that others wrote to do harm: refused by name, soon, in little memory.

`python tests/mindtorch/test_hostile_pickles.py` loads them all and prints what each came to.
"""

import copyreg
import io
import os
import pickle
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator

import pytest

TENSOR = (
    "ctorch._utils\n_rebuild_tensor_v2\n((Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI1\ntQI0\n"
    "({size}t({stride}tI00\nccollections\nOrderedDict\n)RtR"
)
WIDE = TENSOR.format(size="I1099511627776\n", stride="I0\n")  # 2**40 elements over one
FLAT = TENSOR.format(size="I1\nI1099511627776\n", stride="I0\nI0\n")
LAYOUT = "ctorch.serialization\n_get_layout\n(Vtorch.sparse_coo\ntR"
META = "ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat32\n(I{n}\nt(I1\ntI00\ntR"

DOUBLED = b"]q\x01" + b"0(h\x01h\x01lq\x01" * 80


def doubled(depth: int, opcode: bytes) -> bytes:
    """One value that holds the one before twice, `depth` times over."""
    return b"I1\n" + (b"q\x00h\x00" + opcode) * depth


PICKLES = {
    "runs by REDUCE": b"cos\nsystem\n(Vtrue\ntR.",
    "runs by STACK_GLOBAL": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",
    "runs by STACK_GLOBAL of the memo": (
        b"\x80\x04\x8c\x02os\x94\x8c\x06system\x940h\x00h\x01\x930."
    ),
    "runs by INST": b"(Vtrue\nios\nsystem\n.",
    "runs by OBJ": b"(cos\nsystem\nVtrue\no.",
    "runs by NEWOBJ": b"\x80\x02csubprocess\nPopen\n(]tU\x81.",
    "runs by NEWOBJ_EX": b"\x80\x04csubprocess\nPopen\n)}\x92.",
    "names by a dotted path": b"\x80\x04\x8c\x05torch\x8c\x0eTensor.__new__\x93.",
    "names a number": b"\x80\x02\x82\x01.",
    "names a large number": b"\x80\x02\x84\xff\xff\xff\x7f.",
    "calls a string": b"Vx\n)R.",
    "calls what it made": b"])R.",
    "calls a dtype": b"ctorch\nfloat32\n)R.",
    "makes a new dtype": b"\x80\x02ctorch\nfloat32\n)\x81.",
    "makes a new function": b"\x80\x02ctorch._utils\n_rebuild_tensor\n)\x81.",
    "makes an empty tensor": b"\x80\x02ctorch\nTensor\n)\x81.",
    "makes a large tensor": b"ctorch\nTensor\n(I1099511627776\ntR.",
    "makes an empty parameter": b"\x80\x02ctorch.nn.parameter\nParameter\n)\x81}Vx\nI1\nsb.",
    "a parameter of a string": b"ctorch._utils\n_rebuild_parameter\n(Vx\nI00\nNtR.",
    "sets the state of a function": b"ctorch._utils\n_rebuild_tensor\n}V__code__\nNsb.",
    "sets the state of a class": b"ctorch\nTensor\n}V__add__\nNsb.",
    "sets slots of a class": b"ccollections\nOrderedDict\n(N}Vx\nI1\nst\x86b.",
    "adds to a function": b"ctorch._utils\n_rebuild_tensor\nI1\na.",
    "sets an item of a class": b"ctorch\nTensor\nI1\nI2\ns.",
    "sets items of a tensor": (WIDE + "NI3\ns.").encode(),
    "adds to a tensor": b"\x80\x04" + WIDE.encode() + b"(I1\n\x90.",
    "arguments of a tensor": (f"cbuiltins\nset\n{WIDE}R.").encode(),
    "a set of a tensor": (f"cbuiltins\nset\n({WIDE}tR.").encode(),
    "a Counter of a tensor": (f"ccollections\nCounter\n({WIDE}tR.").encode(),
    "a dict of a tensor": (f"ccollections\nOrderedDict\n({WIDE}tR.").encode(),
    "a dict of pairs of tensors": (f"ccollections\nOrderedDict\n((l{WIDE}atR.").encode(),
    "a size of a tensor": (f"ctorch\nSize\n({WIDE}tR.").encode(),
    "a set of a meta tensor": (f"cbuiltins\nset\n({META.format(n=1 << 60)}tR.").encode(),
    "bytes of a tensor": (f"cbuiltins\nbytearray\n({WIDE}tR.").encode(),
    "bytes of a number": b"cbuiltins\nbytearray\n(I99999999999\ntR.",
    "bytes of a length": b"\x80\x05\x96" + (1 << 44).to_bytes(8, "little") + b".",
    "text of a length": b"\x80\x04\x8d" + (1 << 44).to_bytes(8, "little") + b".",
    "a frame of a length": b"\x80\x04\x95" + (1 << 44).to_bytes(8, "little") + b".",
    "a memo at the end": b"Nr\xff\xff\xff\xffj\xfe\xff\xff\xff.",
    "a number of digits": b"L" + b"9" * 200_000 + b"L\n.",
    "sparse of repeated elements": (
        f"ctorch._utils\n_rebuild_sparse_tensor\n({LAYOUT}({FLAT}{WIDE}(I3\ntttR."
    ).encode(),
    "sparse of nothing": (f"ctorch._utils\n_rebuild_sparse_tensor\n({LAYOUT})tR.").encode(),
    "size of a tensor": (
        TENSOR.format(size="", stride="").replace("(t(tI00", f"({WIDE}t({WIDE}tI00") + "."
    ).encode(),
    "negative strides": (TENSOR.format(size="I1\n", stride="I-1\n") + ".").encode(),
    "past its storage": (TENSOR.format(size="I2\n", stride=f"I{1 << 62}\n") + ".").encode(),
    "a deep key": b"}" + b"N" + b"\x85" * 2_000_000 + b"Ns.",
    "a deep member": b"cbuiltins\nset\n((lN" + b"\x85" * 2_000_000 + b"atR.",
    "a deep name of a storage": b"(Vstorage\nctorch\nFloatStorage\nN" + b"\x85" * 900_000 + b"tQ.",
    "a doubled key": b"}" + doubled(80, b"\x86") + b"Ns.",
    "a doubled member": b"\x80\x04\x8f(" + doubled(80, b"\x86") + b"\x90.",
    "a doubled frozen set": b"\x80\x04(" + doubled(80, b"\x86") + b"\x91.",
    "a doubled list as a name": DOUBLED + b"Q.",
    "a doubled list as attributes": (
        b"ctorch._utils\n_rebuild_parameter_with_state\n(" + WIDE.encode() + b"I00\nN" + DOUBLED
        + b"tR."
    ),
    "a device beyond all": b"ctorch\ndevice\n(Vnpu:99999999999999999999\ntR.",
    "no end": b"}",
    "no start": b"0.",
    "marks without end": b"(" * 1_000_000 + b".",
    "nothing": b"",
}  # fmt: skip


def file_of(body: bytes, *entries: tuple[str, bytes], packed: bool = False) -> bytes:
    """A zip file as torch.save writes it, around a pickle."""
    file = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", kind) as out:
        out.writestr("archive/data.pkl", body)
        for name, data in entries or (("archive/data/0", bytes(4)),):
            out.writestr(name, data)
    return file.getvalue()


def legacy(*pickles: bytes) -> bytes:
    """A file as torch.save wrote it before zip files, around pickles."""
    head = (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})
    return b"".join(pickle.dumps(value, 2) for value in head) + b"".join(pickles)


def zips() -> dict[str, bytes]:
    """Zip files that lie about what is in them."""
    one = file_of((WIDE + ".").encode())
    central = one.rindex(b"PK\x01\x02")
    lying = bytearray(one)
    lying[central + 24 : central + 28] = (0xFFFFFFFE).to_bytes(4, "little")  # size unpacked
    encrypted = bytearray(one)
    encrypted[one.index(b"PK\x01\x02") + 8] |= 1
    overlapped = bytearray(one)
    overlapped[central + 42 : central + 46] = (0).to_bytes(4, "little")  # where the entry starts
    other = bytearray(one)
    other[one.index(b"PK\x01\x02") + 10] = 14  # LZMA
    beyond = bytearray(one)
    beyond[one.index(b"PK\x01\x02") + 42 : one.index(b"PK\x01\x02") + 46] = b"\xff\xff\xff\x7f"
    twice = [(f"archive/data/{k}", b"") for k in range(30_000)] + [("archive/data/0", b"")]
    return {
        "a pickle that unpacks to 18 MB": file_of(b"N0" * (9 << 20), packed=True),
        "a size that lies": bytes(lying),
        "encrypted": bytes(encrypted),
        "overlapping entries": bytes(overlapped),
        "a packing that it is not": bytes(other),
        "an entry beyond the end": bytes(beyond),
        "many entries, one twice": file_of(b"N.", *twice),
        "a byte order of noise": file_of(b"N.", ("archive/byteorder", b"\xff\xfe\x80")),
        "no pickle": file_of(b"N.").replace(b"data.pkl", b"data.bin"),
        "an end of zip64 that lies": one.replace(
            b"PK\x05\x06", b"PK\x06\x07" + bytes(4) + b"\xff" * 8 + bytes(4) + b"PK\x05\x06"
        ),
        "cut short": one[:-30],
    }


def files() -> Iterator[tuple[str, bytes]]:
    """Every hostile file with its name."""
    for name, body in PICKLES.items():
        yield name, file_of(body)
        stored = b"FloatStorage\nV0" in body
        rest = (1).to_bytes(8, "little") + bytes(4) if stored else b""
        yield f"legacy: {name}", legacy(body, pickle.dumps(["0"] if stored else [], 2), rest)
    for keys in ([[1]], [{}], {"0": 0}, "0", [None]):  # where a list of texts belongs
        yield f"legacy: {keys!r} for keys", legacy(b"N.", pickle.dumps(keys, 2))
    yield from zips().items()


def attack() -> None:
    """Load each file in this process, whose memory is bounded; print its name and outcome."""
    import mindtorch

    copyreg.add_extension("os", "system", 1)
    try:
        import resource

        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 30), resource.RLIM_INFINITY))
    except (ImportError, OSError):
        pass  # no bound of memory on this system
    for name, data in files():
        print(name, end="\t", flush=True)
        signal.alarm(20)
        try:
            value = mindtorch.load(io.BytesIO(data))
            print(f"read {type(value).__name__}")
        except (RuntimeError, pickle.UnpicklingError) as error:
            text = " ".join(str(error).split())
            print(type(error).__name__, text[:300].encode("ascii", "replace").decode())
        except Exception as error:
            print(f"UNNAMED {error!r:.300}")
    signal.alarm(0)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_hostile_files_are_refused_by_name():
    command = [sys.executable, __file__]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    outcomes = dict(line.split("\t") for line in done.stdout.splitlines() if "\t" in line)
    assert done.returncode == 0, (done.stdout[-300:], done.stderr[-300:])
    assert set(outcomes) == {name for name, _ in files()}
    named = ("RuntimeError ", "UnpicklingError ")
    assert {k: v for k, v in outcomes.items() if not v.startswith(named)} == {}


def test_names_in_a_file_are_all_told():
    serialization = pytest.importorskip("mindtorch").serialization
    for name, told in (
        ("runs by STACK_GLOBAL of the memo", "os.system"), ("runs by INST", "os.system"),
        ("runs by NEWOBJ_EX", "subprocess.Popen"),
    ):  # fmt: skip
        file = io.BytesIO(file_of(PICKLES[name]))
        assert serialization.get_unsafe_globals_in_checkpoint(file) == [told], name


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_devices_and_pipes_are_no_files_of_tensors(tmp_path):
    import mindtorch

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, "/dev/zero", "/dev/urandom"):
        with pytest.raises(RuntimeError, match="no file of tensors"):
            mindtorch.load(path)


if __name__ == "__main__":
    attack()
