"""Gives every argument that is a size, and every tensor, a size that is wrong; torch judges.

`python tests/mindtorch/size_sweep.py [--rows PREFIX] [--every N] [--npu]` runs each call in torch
and in mindtorch, in a child under a limit of memory, and judges

- the class of the error, or the shapes of the results where torch takes the call;
- that nothing takes more than 2 s of CPU (unless torch takes as long) or more than 1 GiB.

Values are not compared: the laws do that, on sizes that fit.
"""

import argparse
import faulthandler
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from mindtorch_npu.laws import call, samples
from mindtorch_npu.laws.compare import NotApplicable, oracle_function

import mindtorch
from mindtorch.ops.samples import Arg
from mindtorch.ops.spec import OPS

SIZES = (-(2**63), -1, 0, 2**31, 2**45, 2**62, 2**63 - 1)
SECONDS, MEMORY = 2.0, 1 << 30
# What makes or reshapes tensors and is no row with samples; N is the size that is wrong.
CALLS = """
zeros(N)  ones(N)  empty(N)  full((N,),1.)  zeros(N,N)  zeros(3,N)  zeros(0,N)  rand(N)  randn(N)
randint(3,(N,))  randperm(N)  arange(N)  arange(0,N,3)  linspace(0,1,N)  logspace(0,1,N)  eye(N)
eye(3,N)  empty_strided((N,),(1,))  empty_strided((3,),(N,))  tril_indices(N,3)
triu_indices(3,N)  bartlett_window(N)  hann_window(N)  hamming_window(N)  blackman_window(N)
kaiser_window(N)  fft.fftfreq(N)  fft.rfftfreq(N)  signal.windows.gaussian(N)
zeros_like(x.expand(N))  rand_like(O(1).expand(N))  empty_like(O(1).expand(N))
x.new_zeros(N)  x.new_full((N,),1.)  x.new_empty((N,3))  x.resize_(N)  x.set_(x.untyped_storage(),0,(N,))
O(1).expand(N).sum()  O(1).expand(N).clone()  O(1).expand(N)+1  O(1).expand(N).sort()
O(1).expand(N).tolist()  O(1).expand(N).contiguous()  O(1).expand(N).nonzero()
O(1).expand(N).unique()  O(1).expand(N).cumsum(0)  O(1).expand(N).topk(1)  O(1).expand(N).double()
O(1).expand(N).isnan().any()  O(1).expand(N).bernoulli()  O(1).expand(N).repeat_interleave(2)
O(1).expand(N).index_select(0,I(1))  x.index_select(0,I(1).expand(N))  x.gather(0,I(1).expand(N))
x.take(I(1).expand(N))  x[I(1).expand(N)]  x.scatter(0,I(1).expand(N),1.)  x[None].expand(N,3)@x
O(N,0)@O(0,N)  O(0,N).sum(0)  O(0,N).mean(0)  O(0,N).cumsum(1)  O(0,N).sort(1)  cat([O(0,N)]*9)
x.view(N)  x.view(-1,N)  x.reshape(N,3)  x.expand(N,3)  x.expand(3,N)  x.repeat(N)  x.repeat(N,N)
x.tile(N)  x.unfold(0,N,1)  x.unfold(0,1,N)  x.narrow(0,N,1)  x.narrow(0,0,N)  x[N:]  x[:N]
x[::N]  x[N]  x.as_strided((N,),(1,))  x.as_strided((3,),(N,))  x.as_strided((3,),(1,),N)
x.split(N)  x.chunk(N)  x.tensor_split(N)  x.unflatten(0,(N,3))  x.unflatten(0,(-1,N))
x.repeat_interleave(N)  repeat_interleave(I(2)+N)  x.roll(N)  x.rot90(N)  x.diag(N)
x.diag_embed(N)  x.diagonal(N)  x.tril(N)  m.tril(N)  m.triu(N)  m.diagonal(N)  m.diag_embed(N)
m.trace()  vander(x,N)  combinations(x,N)  combinations(arange(100),20)  x.bincount(minlength=N)
I(3).bincount(minlength=N)  histc(x,N)  x.histogram(N)  multinomial(x,N,True)  multinomial(x,N)
x.topk(N)  x.kthvalue(N)  x.quantile(.5)  x.diff(N)  m.matrix_power(N)  linalg.matrix_power(m,N)
x.unsqueeze(N)  x.squeeze(N)  x.movedim(0,N)  x.flip(N)  x.sum(N)  x.max(N)  m.transpose(0,N)
x.permute(N)  x.renorm(2,0,1.).sum()  poisson(x).sum()  cartesian_prod(*[arange(100)]*N4)
meshgrid(*[O(2)]*70)  block_diag(*[x]*9)  x.multiply(N)  x.bitwise_left_shift(N)  I(3).__lshift__(N)
one_hot(I(3),N)  F.one_hot(I(3),N)  F.pad(x,(0,N))  F.pad(x,(N,0))  F.pad(x,(-2,N))
F.pad(q,(N,N))  F.pad(q,(N,0),'reflect')  F.pad(q,(N,0),'replicate')  F.pad(q,(N,0),'circular')
F.unfold(q,N)  F.unfold(q,2,N)  F.unfold(q,2,1,N)  F.unfold(q,2,1,0,N)  F.fold(O(1,4,9),N,2)
F.interpolate(q,N)  F.interpolate(q,(N,1),mode='bilinear')  F.interpolate(q,scale_factor=N)
F.upsample(q,N)  F.pixel_shuffle(q,N)  F.pixel_unshuffle(q,N)  F.channel_shuffle(q,N)
F.avg_pool2d(q,N)  F.avg_pool2d(q,2,N)  F.avg_pool2d(q,2,1,N)  F.max_pool2d(q,N)
F.max_pool2d(q,2,N)  F.max_pool2d(q,2,1,N)  F.max_pool2d(q,2,1,0,N)  F.lp_pool2d(q,2,N)
F.adaptive_avg_pool2d(q,N)  F.adaptive_max_pool2d(q,N)  F.adaptive_avg_pool1d(q[0],N)
F.conv2d(q,q,stride=N)  F.conv2d(q,q,padding=N)  F.conv2d(q,q,dilation=N)  F.conv2d(q,q,groups=N)
F.conv_transpose2d(q,q,stride=N)  F.conv_transpose2d(q,q,padding=N)  F.max_unpool2d(q,q.long(),2)
F.conv_transpose2d(q,q,output_padding=N)  F.conv_transpose2d(q,q,dilation=N)
F.affine_grid(O(1,2,3),(1,1,N,2))  F.local_response_norm(q,N)  F.embedding(I(3).expand(N,3),m)
F.group_norm(q,N)  F.layer_norm(q,(N,))  F.gumbel_softmax(x.expand(N,3))  F.dropout(O(1).expand(N))
nn.Linear(N,3)  nn.Linear(3,N)  nn.Conv2d(N,1,1)  nn.Conv2d(1,1,N)  nn.Embedding(N,3)
nn.LSTM(3,N)  nn.GRU(3,3,N)  nn.BatchNorm1d(N)  nn.LayerNorm(N)  nn.MultiheadAttention(N,1)
fft.fft(x,N)  fft.ifft(x,N)  fft.rfft(x,N)  fft.irfft(x,N)  fft.fft2(m,(N,N))  fft.hfft(x,N)
stft(O(16),N,return_complex=True)  stft(O(16),4,N,return_complex=True)  cdist(O(N,0),O(N,0))
cov(x,correction=N)  x.var(correction=N)  x.std(0,correction=N)  tensordot(m,m,N)  nn.init.eye_(O(0,N))
bucketize(x,O(1).expand(N))  searchsorted(O(1).expand(N),x)  isin(x,O(1).expand(N))  x.put_(I(3)+N,m[0])
nn.utils.rnn.pad_sequence([O(1).expand(N)]*2)  Size([N,N]).numel()  x.storage_offset()+N
nn.Unfold(N)(q)  nn.Upsample(N)(q)  nn.ZeroPad2d(N)(q)  nn.Fold(N,2)(O(1,4,9))
Generator().manual_seed(N).initial_seed()  manual_seed(N)  set_num_threads(N)
"""  # noqa: E501
CLASSES = ("IndexError", "TypeError", "OverflowError", "RuntimeError", "ValueError")
DIES = "dies, or does not end"
# Where the outcomes differ and ours stands.
_WRAPS = "torch's arithmetic wraps around; ours refuses or gives the right result"
_COUNTS = "numpy counts the bytes of the other dimensions of an empty array, and torch does not"
KNOWN = {
    **dict.fromkeys(("zeros(0,N)", "O(0,N).cumsum(1)", "cat([O(0,N)]*9)", "nn.init.eye_(O(0,N))",
                     "O(1).expand(N).index_select(0,I(1))"), _COUNTS),
    **dict.fromkeys(("fft.rfftfreq(N)", "x[::N]", "x.chunk(N)", "x.roll(N)", "F.unfold(q,N)",
                     "F.unfold(q,2,N)", "F.unfold(q,2,1,N)", "F.unfold(q,2,1,0,N)",
                     "nn.Unfold(N)(q)", "F.conv2d(q,q,stride=N)", "F.conv2d(q,q,dilation=N)",
                     "stft(O(16),4,N,return_complex=True)"), _WRAPS),
    "O(1).expand(N).tolist()": "no list has as many members: a ValueError in numpy's words",
    "O(0,N).sort(1)": "torch allocates for an empty result",
    "bucketize(x,O(1).expand(N))": "torch copies the boundaries, where a search reads a few",
    "searchsorted(O(1).expand(N),x)": "torch copies the boundaries, where a search reads a few",
}  # fmt: skip
# Rows that read 2**45 elements of one place, which torch copies first and has no memory for.
READ = ("max self", "min self", "masked_select self")
TAKES_LONG = "takes more than 2 s"


@dataclass(frozen=True)
class Attack:
    """One call: what it is called in the report, and how it is made in a library."""

    name: str
    group: str
    run: Callable[[ModuleType], Any]


def expressions() -> Iterator[Attack]:
    for line in CALLS.splitlines():
        for text in filter(str.strip, line.split("  ")):
            uses = "N" in text.replace("N4", "")
            for size in SIZES if uses else (0,):
                name = text.replace("N4", "5").replace("BN", "B")
                yield Attack(f"{name.strip()} N={size}", name, _expression(name, size))


def _expression(text: str, size: int) -> Callable[[ModuleType], Any]:
    def run(library: ModuleType) -> Any:
        made = {"device": _device(library)}
        scope = {
            "F": library.nn.functional, "N": size,
            "O": lambda *s: library.ones(*s, **made),
            "I": lambda *s: library.zeros(*s, dtype=library.int64, **made),
            "x": library.ones(3, **made), "m": library.ones(3, 3, **made),
            "q": library.ones(1, 1, 3, 3, **made),
        }  # fmt: skip
        return eval(text, {}, _Names(library, scope))

    return run


class _Names(dict[str, Any]):
    """A library's names, some of which load at their first use, and ours."""

    def __init__(self, library: ModuleType, ours: dict[str, Any]) -> None:
        super().__init__(ours)
        self.library = library

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(self.library, name)
        except AttributeError:
            raise KeyError(name) from None


def rows(prefix: str) -> Iterator[Attack]:
    """Each whole number and each tensor of each row's first samples, one at a time."""

    def invoke(op: Any, library: ModuleType, args: Any, kwargs: Any) -> Any:
        if library is torch:
            return oracle_function(op, torch)(*args, **kwargs)
        try:
            function = oracle_function(op, library)
        except (AttributeError, NotApplicable):
            return call(op, args, kwargs)
        return function(*args, **kwargs)

    for name, op in OPS.items():
        if not name.startswith(prefix):
            continue
        try:
            oracle_function(op, torch)
        except (NotApplicable, AttributeError):
            continue
        for number, sample in enumerate([s for s in samples(op) if not s.error][:4]):
            for what, change in _changes(op, sample):
                yield Attack(
                    f"{name} {number} {what}",
                    f"{name} {what.partition('=')[0]}",
                    lambda library, op=op, change=change: invoke(op, library, *change(library)),
                )


def _changes(op: Any, sample: Any) -> Iterator[tuple[str, Callable[[ModuleType], Any]]]:
    for i, argument in enumerate(op.schema.args):
        if argument.type not in ("int", "int[]", "Tensor", "Tensor|Scalar"):
            continue
        present = i < len(sample.args)
        value = sample.args[i] if present else sample.kwargs.get(argument.name, argument.default)
        for changed, what in _changed(value, argument.type):
            yield f"{argument.name}={what}", _with(sample, i, argument.name, present, changed)


def _changed(value: Any, kind: str) -> Iterator[tuple[Any, str]]:
    if isinstance(value, Arg) and value.shape and value.values is None:
        for size in (0, 2**45, 2**62):
            yield (value, size), f"{size}{list(value.shape[1:])}"
    elif kind == "int" and not isinstance(value, bool | str):
        for size in SIZES:
            yield size, str(size)
    elif kind == "int[]" and isinstance(value, tuple | list) and value:
        for at in {0, len(value) - 1}:
            for size in SIZES:
                whole = [*value[:at], size, *value[at + 1 :]]
                yield type(value)(whole), str(whole)


def _with(
    sample: Any, at: int, name: str, positional: bool, changed: Any
) -> Callable[[ModuleType], Any]:
    def make(library: ModuleType) -> Any:
        args, kwargs = sample.make(library, _device(library))
        value = changed
        if isinstance(changed, tuple) and changed and not isinstance(changed[0], int):
            arg, size = changed
            small = type(arg)((1, *arg.shape[1:]), arg.dtype, arg.low, arg.high)
            value = small.make(library, _device(library)).expand(size, *arg.shape[1:])
        if positional:
            args[at] = value
        else:
            kwargs[name] = value
        return args, kwargs

    return make


_on_npu = False
_SILENT = Path(os.devnull).open("w")  # noqa: SIM115 - as long as the process


def _device(library: ModuleType) -> str:
    return "npu" if _on_npu and library.__name__ == "mindtorch" else "cpu"


def outcome(library: ModuleType, attack: Attack) -> str:
    """What a call gives: shapes, the class of an error with its text, or that it takes too long."""
    faulthandler.dump_traceback_later(5 * SECONDS, exit=True, file=_SILENT)
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            return _shapes(attack.run(library))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except TimeoutError:
        return TAKES_LONG
    except Exception as error:
        names = [c.__name__ for c in type(error).__mro__]
        return next((n for n in names if n in CLASSES), names[0]) + ": " + str(error)[:150]
    finally:
        faulthandler.cancel_dump_traceback_later()


def _shapes(value: Any) -> str:
    if hasattr(value, "shape"):
        return str(tuple(value.shape))
    if isinstance(value, tuple | list):
        return f"[{', '.join(_shapes(v) for v in value[:4])}]"
    return type(value).__name__


def _late(*_: Any) -> None:
    raise TimeoutError


def child(attacks: list[Attack], results: list[dict[str, str]], log: Any) -> None:
    """Run the attacks that have no result yet; each is written down before and after."""
    signal.signal(signal.SIGPROF, _late)
    mindtorch.ones(2, device=_device(mindtorch)) + 1
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + MEMORY,) * 2)
    hopeless = {a.group for a, r in zip(attacks, results, strict=True) if "torch" not in r and r}
    for i, attack in enumerate(attacks):
        if results[i] or attack.group in hopeless:
            continue
        for library in (torch, mindtorch):
            log.write(json.dumps([i, library.__name__, DIES]) + "\n")
            log.flush()
            result = outcome(library, attack)
            log.write(json.dumps([i, library.__name__, result]) + "\n")
            log.flush()


def sweep(attacks: list[Attack]) -> list[dict[str, str]]:
    """Outcomes by attack and library. A child that dies is followed by another.

    What torch itself died of or never ended is not tried with other sizes.
    """
    results: list[dict[str, str]] = [{} for _ in attacks]
    while True:
        with tempfile.TemporaryFile("w+") as log:
            pid = os.fork()
            if not pid:
                try:
                    child(attacks, results, log)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
                os._exit(0)
            _, status = os.waitpid(pid, 0)
            log.seek(0)
            for line in log:
                i, library, result = json.loads(line)
                results[i][library] = result
            for result in results:
                if result.get("torch") == DIES:
                    result.update(mindtorch="not run")
                    result["oracle"] = result.pop("torch")
        if not status:
            return results


def hangs(attack: Attack, result: dict[str, str]) -> bool:
    """Whether mindtorch does not end what torch ends, or refuses."""
    if not result or "oracle" in result or attack.group in READ:
        return False
    return result["mindtorch"] in (DIES, TAKES_LONG) and result["torch"] != TAKES_LONG


def differ(attack: Attack, result: dict[str, str]) -> bool:
    """Whether mindtorch's outcome is another; what torch does not end may be refused."""
    if not result or "oracle" in result:
        return False
    if hangs(attack, result):
        return True
    expected, got = result["torch"], result["mindtorch"]
    if attack.group in KNOWN or DIES in (expected, got):
        return False
    return expected != TAKES_LONG and expected.partition(":")[0] != got.partition(":")[0]


def main() -> int:
    global _on_npu
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default=None)
    parser.add_argument("--calls", action="store_true", help="the calls that are no rows, alone")
    parser.add_argument("--hangs", action="store_true", help="judge only that calls end")
    parser.add_argument("--npu", action="store_true")
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    _on_npu = options.npu
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    attacks = [] if options.rows is not None else list(expressions())
    if not options.calls:
        attacks += rows(options.rows or "")
    attacks = attacks[:: options.every]
    results = sweep(attacks)
    judge = hangs if options.hangs else differ
    bad = [(a, r) for a, r in zip(attacks, results, strict=True) if judge(a, r)]
    for attack, result in bad:
        print(
            f"{attack.name}\n    torch     {result['torch']}\n    mindtorch {result['mindtorch']}"
        )
    print(f"{len(attacks)} calls, {sum(map(bool, results))} run, {len(bad)} differ")
    return min(len(bad), 1)


if __name__ == "__main__":
    sys.exit(main())
