"""Laws over all samples of a row: one test of a row, whose failure names laws and samples."""

import pytest
from mindtorch_npu import laws

CASES = laws.cases()


def rows_of(names, where=lambda op, sample: True):
    """Per row a parameter: each law that concerns a sample, with the sample and its number."""
    rows = {}
    for op, i, sample in CASES:
        concerned = [law for law in names if laws.concerns(law, op, sample) and where(op, sample)]
        rows.setdefault(op.name, (op, []))[1].extend((law, i, sample) for law in concerned)
    for op, cases in rows.values():
        if cases:
            yield pytest.param(op, cases, id=op.name)


def apply(table, op, cases, *args):
    """Run every case; fail with a line for each that fails, skip where none is applicable."""
    failures, reasons = [], []
    for law, i, sample in cases:
        try:
            table[law](op, sample, *args)
        except laws.NotApplicable as reason:
            reasons.append(f"{law}, sample {i}: {reason}")
        except Exception as error:
            text = f"{law}, sample {i}, {sample}: {type(error).__name__}: {error}"
            failures.append((text, error))
    if failures:
        raise AssertionError("\n".join(text for text, _ in failures)) from failures[0][1]
    if len(reasons) == len(cases):
        pytest.skip("; ".join(reasons))
