"""Writes the operators of TorchScript, with their order: `python -m tests.opdb.torchscript`.

They are facts of the installed torch: an overload's declaration decides how a call is lowered.
"""

import inspect
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "mindtorch" / "_compat" / "torchscript"
PRIM = (
    "id abs rangelist max min layout dtype device data requires_grad is_cuda is_cpu is_meta"
    " is_sparse is_sparse_csr is_quantized is_mkldnn is_nested is_xpu name index type itemsize"
    " nbytes NumToTensor RaiseException Print grad"
)
HIDDEN = ("_backward", "_out", "_copy", "_jvp", "_functional", "_overrideable", "_cachemask")


def operators(torch):
    """The declarations that a program can reach, without those of results that are given."""
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if any(a.is_out for a in schema.arguments):
            continue
        if space == "prim" and name in PRIM.split():
            yield str(schema)
        shown = not name.startswith("_") or name.startswith("__") or name in EXTRA
        if space == "aten" and shown and not name.endswith(HIDDEN):
            yield str(schema).removeprefix("aten::")


def grouped(declarations: Iterable[str]) -> Iterator[str]:
    """Lines of names and what they take and give; those of one operator stay in their order."""
    queues: dict[str, list[tuple[str, str]]] = {}
    for declaration in declarations:
        head, opened, rest = declaration.partition("(")
        queues.setdefault(head.partition(".")[0], []).insert(0, (head, opened + rest))
    left = Counter(rest for queue in queues.values() for _, rest in queue)
    ready: dict[str, list[list[tuple[str, str]]]] = {}
    for queue in queues.values():
        ready.setdefault(queue[-1][1], []).append(queue)
    while ready:
        # First those of which no operator has one behind another that is not written yet.
        rest = min(ready, key=lambda r: (left[r] - len(ready[r]), -len(ready[r]), r))
        fitting = ready.pop(rest)
        heads = [queue.pop()[0] for queue in fitting]
        left[rest] -= len(heads)
        for queue in filter(None, fitting):
            ready.setdefault(queue[-1][1], []).append(queue)
        yield f"{' '.join(heads)}: {rest}"


EXTRA = ("_set_item", "_unwrap_optional", "_shape_as_tensor", "_softmax", "_log_softmax")


def functions(torch):
    """The declarations of torch's functions of Python, as the compiler has them."""
    from torch._jit_internal import boolean_dispatched
    from torch.jit._builtins import _find_builtin

    for module in (torch.nn.functional, torch.functional, torch.nn.init):
        for name, function in sorted(vars(module).items()):
            if not inspect.isfunction(function) or _find_builtin(function):
                continue
            choice = boolean_dispatched.get(function)
            two = [choice["if_false"], choice["if_true"]] if choice else [function]
            try:
                schemas = [str(torch.jit.script(f).schema) for f in two]
            except Exception:
                continue
            end = f" {choice['arg_name']}" if choice else ""
            for schema, each in zip(schemas, two, strict=True):
                yield f"{module.__name__}.{name}{end} = {each.__module__}.{schema}"


def pools():
    """Declarations that torch prints for no caller: their defaults stand for lists."""
    for n in (1, 2, 3):
        pool = (
            f"(Tensor input, int[{n}] kernel_size, int[{n}]? stride=None, int[{n}] padding=0, "
            f"int[{n}] dilation=1, bool ceil_mode=False, bool return_indices=False) -> "
        )
        head, space = f"torch.nn.functional.max_pool{n}d return_indices", "torch.nn.functional"
        yield f"{head} = {space}._max_pool{n}d{pool}Tensor"
        yield f"{head} = {space}.max_pool{n}d_with_indices{pool}((Tensor, Tensor))"
        yield (
            f"{space}.max_unpool{n}d = {space}.max_unpool{n}d(Tensor input, Tensor indices, "
            f"int[{n}] kernel_size, int[{n}]? stride=None, int[{n}] padding=0, "
            f"int[{n}]? output_size=None) -> Tensor"
        )
    yield (
        "torch.nn.functional.unfold = torch.nn.functional.unfold(Tensor input, int[2] kernel_size, "
        "int[2] dilation=1, int[2] padding=0, int[2] stride=1) -> Tensor"
    )
    yield (
        "torch.nn.functional.fold = torch.nn.functional.fold(Tensor input, int[2] output_size, "
        "int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1) -> Tensor"
    )


def overloads():
    """Functions with several declarations, in the order of their trial."""
    for dim, p in (("int[]?", "str"), ("int[]?", "Scalar"), ("int?", "Scalar"), ("int?", "str")):
        yield (
            f'torch.functional.norm = torch.functional.norm(Tensor input, {p} p="fro", '
            f"{dim} dim=None, bool keepdim=False, Tensor? out=None, int? dtype=None) -> Tensor"
        )
    kinds = (("int?", "float[]?"), ("int[]?", "float[]?"), ("int?", "float?"), ("int[]?", "float?"))
    for size, factor in kinds:
        yield (
            f"torch.nn.functional.interpolate = torch.nn.functional.interpolate(Tensor input, "
            f'{size} size=None, {factor} scale_factor=None, str mode="nearest", bool? '
            "align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor"
        )
    for dims in ("int dims=2", "int[][] dims=2", "Tensor dims=2"):
        yield (
            f"torch.functional.tensordot = torch.functional.tensordot(Tensor a, Tensor b, {dims}, "
            "Tensor? out=None) -> Tensor"
        )


def layers():
    """Layers' declarations that their annotations do not say."""
    several = "torch.nn.modules"
    state = {"RNN": "Tensor", "GRU": "Tensor", "LSTM": "(Tensor, Tensor)"}
    for name, kind in state.items():
        yield (
            f"{several}.rnn.{name}.forward = {several}.rnn.{name}.forward__0(Tensor input, "
            f"{kind}? hx=None) -> ((Tensor, {kind}))"
        )
    yield (
        f"{several}.rnn.LSTMCell.forward = {several}.rnn.LSTMCell.forward(Tensor input, "
        "(Tensor, Tensor)? hx=None) -> ((Tensor, Tensor))"
    )
    yield (
        f"{several}.activation.MultiheadAttention.forward = "
        f"{several}.activation.MultiheadAttention.forward(Tensor query, Tensor key, Tensor value, "
        "Tensor? key_padding_mask=None, bool need_weights=True, Tensor? attn_mask=None, bool "
        "average_attn_weights=True, bool is_causal=False) -> ((Tensor, Tensor?))"
    )


def main():
    import torch

    warnings.simplefilter("ignore")
    head = "# Written by tests/opdb/torchscript.py from torch 2.13; not edited.\n"
    several = chain(functions(torch), pools(), overloads(), layers())
    single = grouped(dict.fromkeys(operators(torch)))
    for name, lines in (("operators.txt", single), ("functions.txt", dict.fromkeys(several))):
        (ROOT / name).write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
