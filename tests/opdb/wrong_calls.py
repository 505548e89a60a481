"""Draws wrong calls of every public function and method, and whether mindtorch refuses as torch.

`python -m tests.opdb.wrong_calls --seed 7 --count 3000` reports how many classes of errors, first
lines and full texts are equal; `--show 40` prints the largest groups of what differs.
"""

import argparse
import multiprocessing
import random
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mindtorch._compat.argument_parser import FunctionSignature, signature
from mindtorch._compat.signatures import signatures_of
from tests.mindtorch import mistakes

SPACES = ("torch", "F", "torch.linalg", "torch.fft", "torch.special", "x")
# What blocks, ends the process, writes outside, or draws another number of arguments.
SKIPPED = """
    compile cpp_extension export import_ir_module load save share_memory_ from_file
    set_num_threads set_num_interop_threads register_hook set_deterministic_debug_mode
    set_default_device set_default_tensor_type set_printoptions set_warn_always backward cuda
    typename frombuffer set_default_dtype use_deterministic_algorithms storage
    set_flush_denormal set_float32_matmul_precision manual_seed seed vitals_enabled set_vital
    read_vitals fork wait set_anomaly_enabled set_autocast_enabled set_grad_enabled parse_ir
    parse_schema parse_type_comment unify_type_list prepare_multiprocessing_environment
    init_num_threads merge_type_from_type_comment layout dtype device qscheme finfo iinfo
"""
VALUES = (
    "x", "v", "b", "idx", "mask", "r", "torch.tensor(2)", "torch.tensor(1.5)", "1", "-1", "0",
    "2.5", "True", "None", "'a'", "object()", "[1, 2]", "(0, 1)", "[x, x]", "(x, 1)", "[1.5]",
    "['a']", "()", "[]", "torch.float32", "float", "np.ones(2)", "1j", "slice(2)", "{}",
    "torch.Size([2])", "range(2)", "b''", "torch.device('cpu')", "torch.strided", "(1, 'a')",
    "[None]", "[True]", "np.float32(1)", "Ellipsis",
)  # fmt: skip
KEYWORDS = """
    foo dim out keepdim dtype axis input other size weight alpha device p bias self mode
    generator eps n requires_grad
"""


def public_names(torch: Any, ours: Any) -> list[str]:
    """`torch.add`, `x.add` …: what both have."""
    warnings.simplefilter("ignore")
    both: list[str] = []
    for space in SPACES:
        theirs, mine = (_space(library, space) for library in (torch, ours))
        for name in dir(theirs):
            value = getattr(theirs, name, None)
            code = getattr(getattr(mine, name, None), "__code__", None)
            refused = code is not None and code.co_filename.endswith("refusals.py")
            private = refused or name.startswith(("_", "sym_")) or name in SKIPPED.split()
            if private or not callable(value) or isinstance(value, type) or not hasattr(mine, name):
                continue
            home = getattr(value, "__module__", None) or "torch"
            if home.startswith("torch") and not home.startswith(
                ("torch._C._jit", "torch.compiler")
            ):
                both.append(f"{space}.{name}")
    return both


def _space(library: Any, name: str) -> Any:
    return library.Tensor if name == "x" else eval(name, mistakes.names(library))


def draw(names: Sequence[str], count: int, seed: int) -> list[str]:
    """Calls with arguments by chance: few, so that most are near to right."""
    dice = random.Random(seed)
    calls = []
    for _ in range(count):
        name = dice.choice(names)
        size = dice.choice((0, 1, 1, 2, 2, 3, 4, 6))
        args = [dice.choice(VALUES) for _ in range(size)]
        if args and name[:2] != "x." and dice.random() < 0.7:
            args[0] = "x"
        for keyword in dice.sample(KEYWORDS.split(), dice.choice((0, 0, 1, 1, 2))):
            args.append(f"{keyword}={dice.choice(VALUES)}")
        calls.append(f"{name}({', '.join(args)})")
    return calls


Outcome = tuple[str, tuple[str, str], tuple[str, str]]
FITTING = {
    "Tensor": ("x", "v", "b", "idx", "mask", "r"), "Scalar": ("1", "2.5"), "double": ("0.5", "1"),
    "int64_t": ("0", "1", "-1"), "SymInt": ("1", "2"), "bool": ("True", "False"),
    "TensorList": ("[x, x]", "(v,)"), "IntArrayRef": ("[0]", "(1,)", "[0, 1]"),
    "SymIntArrayRef": ("[2]", "(3, 4)"), "c10::string_view": ("'mean'", "'a'"),
    "ScalarType": ("torch.float32", "torch.int64"), "Device": ("'cpu'",), "PyObject*": ("[1, 2]",),
}  # fmt: skip


def near(names: Sequence[str], count: int, seed: int) -> list[str]:
    """Calls as a signature wants them, but for one fault."""
    dice = random.Random(seed)
    calls: list[str] = []
    while len(calls) < count:
        name = dice.choice(names)
        row = _signature(name, dice)
        args = [_fitting(p.kind, dice) for p in row.params if p.default is None]
        named = [p for p in row.params if p.default is not None]
        kept = dice.sample(named, min(len(named), dice.choice((0, 0, 1, 1, 2))))
        pairs = [f"{p.name}={_fitting(p.kind, dice)}" for p in kept if p.name != "out"]
        fault = dice.choice(("drop", "wrong", "wrong", "wrong", "more", "keyword", "twice", "none"))
        if fault == "drop" and args:
            args.pop(dice.randrange(len(args)))
        elif fault == "wrong" and args:
            args[dice.randrange(len(args))] = dice.choice(VALUES)
        elif fault == "wrong" and named:
            wrong = dice.choice(named).name
            pairs = [p for p in pairs if p.split("=")[0] != wrong]
            pairs.append(f"{wrong}={dice.choice(VALUES)}")
        elif fault == "more":
            args += dice.choices(VALUES, k=max(1, row.places - len(args) + 1))
        elif fault == "keyword":
            pairs.append(f"{dice.choice(('foo', 'inplace', 'axes', 'dims', 'device'))}=1")
        elif fault == "twice" and args:
            pairs.append(f"{row.params[0].name}={args[0]}")
        elif args:
            args[dice.randrange(len(args))] = "None"
        calls.append(f"{name}({', '.join(args + list(dict.fromkeys(pairs)))})")
    return [c for c in calls if _compiles(c)]


def _compiles(call: str) -> bool:
    try:
        compile(call, "call", "eval")
    except SyntaxError:
        return False
    return True


def _signature(name: str, dice: random.Random) -> FunctionSignature:
    space, _, last = name.rpartition(".")
    key = "." + last if space == "x" else last
    if space in ("torch.special", "torch.linalg"):
        key = f"{space.split('.')[-1]}_{last}"
    elif space == "torch.fft":
        key = f"fft_{last}" if not last.startswith("fft_") else last
    rows = signatures_of(key)
    return dice.choice(rows) if rows else signature(f"{last}(Tensor input)"[:99])


def _fitting(kind: str, dice: random.Random) -> str:
    return dice.choice(FITTING.get(kind, ("None",)))


def full(error: BaseException) -> str:
    """An error's whole text as it is compared."""
    text = str(error).split("\nException raised")[0].strip()
    text = re.sub(r"0x[0-9a-f]+", "0x", text).replace("mindtorch", "torch")
    text = re.sub(r"\bnpu(:0)?\b", "cpu", text)
    return re.sub(r"\bNPU", "CPU", text).replace("torch.cpu.", "torch.")


def outcome(library: Any, device: str, code: str) -> tuple[str, str]:
    """The class and text of what a call raises; two empty ones without an error."""
    error = mistakes.raised(library, device, code)
    return ("", "") if error is None else (type(error).__name__, full(error))


def _run(queue: Any, device: str, calls: Sequence[str]) -> None:
    import torch

    import mindtorch

    queue.put(_outcomes(torch, mindtorch, device, calls))


def _outcomes(torch: Any, mindtorch: Any, device: str, calls: Sequence[str]) -> list[Outcome]:
    return [(c, outcome(torch, "cpu", c), outcome(mindtorch, device, c)) for c in calls]


def compare(calls: Sequence[str], device: str = "cpu", size: int = 100) -> list[Outcome]:
    """Each call with torch's outcome and mindtorch's; a call that ends the process is left out."""
    # A fresh process: threads of a pool do not live on in a forked one, which then waits for them.
    context = multiprocessing.get_context("spawn")
    results: list[Outcome] = []
    for at in range(0, len(calls), size):
        chunk = calls[at : at + size]
        queue = context.SimpleQueue()
        process = context.Process(target=_run, args=(queue, device, chunk))
        process.start()
        while process.is_alive() and queue.empty():
            process.join(0.05)
        if not queue.empty():
            results += queue.get()
        elif size > 1:
            results += compare(chunk, device, max(1, size // 10))
        process.join()
    return results


def report(results: Iterable[Outcome], show: int) -> None:
    """How much is equal, and the groups of what is not."""
    counts: Counter[str] = Counter()
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for call, theirs, mine in results:
        if theirs == mine == ("", ""):
            counts["neither refuses"] += 1
            continue
        counts["refused"] += bool(theirs[0])
        if not theirs[0]:
            counts["refused here alone"] += 1
        same_class = theirs[0] == mine[0]
        line = same_class and theirs[1].split("\n")[0] == mine[1].split("\n")[0]
        counts["class"] += same_class
        counts["first line"] += line
        counts["full text"] += theirs == mine
        if theirs != mine:
            groups[_shape(call, theirs), _shape(call, mine)].append(call)
    for (theirs, mine), calls in sorted(groups.items(), key=lambda g: -len(g[1]))[:show]:
        print(f"{len(calls)} x\n    torch {theirs}\n    ours  {mine}")
        for call in calls[:4]:
            print("      ", call)
    total = counts["refused"]
    print(", ".join(f"{k}: {v}" for k, v in counts.items()))
    print(
        " ".join(
            f"{k} {counts[k] / max(total, 1):.1%}" for k in ("class", "first line", "full text")
        )
    )


def _shape(call: str, result: tuple[str, str]) -> str:
    name = call.split("(")[0].split(".")[-1]
    text = re.sub(rf"\b{name}\b", "NAME", result[1][:300])
    text = re.sub(r"'\w+'", "'W'", re.sub(r"\d+", "N", text))
    return f"{result[0]}: {text}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--device", default="cpu", choices=("cpu", "npu"))
    parser.add_argument("--show", type=int, default=30)
    parser.add_argument("--far", action="store_true", help="arguments by chance")
    parser.add_argument("--agreeing", type=Path, help="where those are written that are equal")
    parser.add_argument("--only", default="", help="a pattern of names")
    asked = parser.parse_args()
    import torch

    import mindtorch

    names = [n for n in public_names(torch, mindtorch) if re.search(asked.only, n)]
    print(len(names), "names")
    calls = (draw if asked.far else near)(names, asked.count, asked.seed)
    results = compare(calls, asked.device)
    if asked.agreeing:
        agreeing = sorted(c for c, theirs, mine in results if theirs == mine != ("", ""))
        asked.agreeing.write_text("\n".join(dict.fromkeys(agreeing)) + "\n")
    report(results, asked.show)


if __name__ == "__main__":
    main()
