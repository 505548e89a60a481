"""Writes `mindtorch/_compat/kernel_backends.txt`: which kinds of tensors an operator of torch has
kernels for, of those that lack one for sparse, nested or quantised tensors.

`python -m tests.opdb.backends` asks the installed torch.
"""

import re
from collections import defaultdict
from pathlib import Path

import torch

from mindtorch._compat import layout_refusals, refusals

PLACE = Path(refusals.__file__).with_name("kernel_backends.txt")
KEYS = (
    "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta"
    " FPGA Vulkan Metal QuantizedCPU QuantizedCUDA QuantizedPrivateUse1 CustomRNGKeyId MkldnnCPU"
    " SparseCPU SparseCUDA SparseMeta SparseMPS SparsePrivateUse1 SparseCsrCPU SparseCsrCUDA"
    " SparseCsrMeta SparseCsrMPS NestedTensorCPU NestedTensorCUDA NestedTensorHPU NestedTensorXPU"
)
SKIPPED = re.compile(
    r"_(?!foreach_norm)|.*(_backward|_copy|_jvp|mkldnn|cudnn|miopen|quantized|[A-Z]_out)"
)


def main() -> None:
    """Write the table: a line per set of kinds."""
    table: dict[str, list[str]] = defaultdict(list)
    answers = {*layout_refusals._table().values()}
    for full in torch._C._dispatch_get_all_op_names():
        space, _, name = full.partition("::")
        if space != "aten" or (SKIPPED.match(name) and name not in answers):
            continue
        has = torch._C._dispatch_has_computed_kernel_for_dispatch_key
        kinds = [key for key in KEYS.split() if has(full, key)]
        if not {"SparseCPU", "SparseCsrCPU", "NestedTensorCPU", "QuantizedCPU"} <= {*kinds}:
            table[" ".join(kinds)].append(name)
    lines = ["# Written by tests/opdb/backends.py from torch 2.13; not edited."]
    lines += [f"{kinds}: {' '.join(sorted(names))}" for kinds, names in sorted(table.items())]
    PLACE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
