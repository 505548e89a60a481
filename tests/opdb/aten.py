"""Writes `mindtorch/ops/aten_overloads.txt`: overloads that torch's operators have and rows lack.

`aten_overload_names.txt` beside it holds the names of all overloads of an operator,
`aten_tags.txt` the overloads that have a tag, `default` left out.

`python -m tests.opdb.aten` reads torch's schemas. An operator with one overload whose arguments are
its row's is left out.
"""

import re
from pathlib import Path

import torch

import mindtorch
from mindtorch.ops import spec
from mindtorch.ops.aten_forms import FORMS

from .torchscript import grouped

PLACE = Path(spec.__file__).with_name("aten_overloads.txt")
NAMES = PLACE.with_name("aten_overload_names.txt")
TAGS = PLACE.with_name("aten_tags.txt")
# All operators have this one, and those that write to `out` the other.
IMPLIED = {"generated", "out", "pt2_compliant_tag"}
# Operators that graphs hold and that are no rows.
MORE = (
    "_is_all_true", "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training", "_to_copy", "_unsafe_view", "bernoulli", "bernoulli_",
    "cauchy", "chunk", "clone", "contiguous", "convolution", "copy", "cross_entropy_loss", "detach",
    "empty", "empty_like", "expand_as", "exponential", "eye", "fill", "full", "full_like",
    "geometric", "gru", "index_put", "item", "lift_fresh_copy", "linspace", "log_normal",
    "lstm", "multinomial", "new_empty", "new_empty_strided", "new_full", "new_ones",
    "new_zeros", "normal", "numpy_T", "ones", "ones_like", "poisson", "rand", "rand_like",
    "randint", "randn", "randn_like", "random", "randperm", "reshape_as", "rnn_relu",
    "rnn_tanh", "scalar_tensor", "to", "type_as", "unflatten", "uniform", "view_as", "zero",
    "zeros_like",
)  # fmt: skip
SCRIPT = re.compile(
    r"Dict\(|\bt\[\]|\.prim_|hacked_twin|\.list_|\.t\(|_copy\.|Storage|sublist|\.str|complex\[\]"
)
SKIPPED = re.compile(r"_foreach|.*(_backward|_window|_copy|_jvp)$")


def overloads() -> dict[str, list[str]]:
    """Schemas by name, without those for names of dims, for results and without tensors."""
    schemas: dict[str, list[str]] = {}
    for schema in torch._C._jit_get_all_schemas():
        text, name = str(schema), schema.name.removeprefix("aten::")
        out = any(a.is_out for a in schema.arguments) or schema.overload_name == "dtype_out"
        out = out or SCRIPT.search(text) is not None
        if schema.name[:6] == "aten::" and "Dimname" not in text and "Tensor" in text and not out:
            plain = re.sub(r"\([abcd](?:!| -> \*)*\)", "", text.removeprefix("aten::"))
            schemas.setdefault(name, []).append(plain.replace("SymInt", "int"))
    return schemas


def overload_names(names: set[str]) -> list[str]:
    """Names of overloads, and the operators that have them: not `default` and, of functions, `out`
    alone."""
    lines: dict[str, list[str]] = {}
    for name in sorted(n for n in names if hasattr(torch.ops.aten, n)):
        kinds = getattr(torch.ops.aten, name).overloads()
        if kinds != ["default"] + ["out"] * (name[-1] != "_"):
            lines.setdefault(" ".join(kinds), []).append(name)
    return [f"{kinds}: {' '.join(lines[kinds])}\n" for kinds in sorted(lines)]


def tag_lines(names: set[str]) -> list[str]:
    """A line for each tag: its name, and those of the overloads that have it."""
    tagged: dict[str, list[str]] = {}
    for name in sorted(n for n in names if hasattr(torch.ops.aten, n)):
        packet = getattr(torch.ops.aten, name)
        for kind in packet.overloads():
            for tag in {t.name for t in getattr(packet, kind).tags} - IMPLIED:
                tagged.setdefault(tag, []).append(f"{name}.{kind}".removesuffix(".default"))
    return [f"{tag} {' '.join(tagged[tag])}\n" for tag in sorted(tagged)]


def main() -> None:
    """Write the table."""
    mindtorch.ones(1)
    schemas = overloads()
    names = {name.partition(".")[0] for name in spec.OPS if not SKIPPED.match(name)}
    head = "# Written by tests/opdb/aten.py from torch 2.13; not edited.\n"
    lines: list[str] = []
    for name in sorted(names | {*MORE}):
        texts = [t for t in schemas.get(name, ()) if ".dtype(" not in t or name == "to"]
        row = spec.OPS.get(name)
        same = row and re.sub(r"\([ab]!?\)", "", row.text) == (texts or [""])[0]
        if len(texts) != 1 or not same:
            lines += [text.rpartition(" -> ")[0] for text in texts]
    PLACE.write_text("\n".join([head[:-1], *grouped(lines), ""]))
    names = {name.partition(".")[0] for name in spec.OPS} | {*MORE, *FORMS}
    names |= {f"{n}_" for n in names}
    NAMES.write_text("".join([head, *overload_names(names)]))
    TAGS.write_text("".join([head, *tag_lines(names)]))


if __name__ == "__main__":
    main()
