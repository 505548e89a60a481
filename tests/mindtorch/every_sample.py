"""Laws over all samples of a row: one test of a law and a row, whose failure names the samples."""

import pytest
from mindtorch_npu import laws

CASES = laws.cases()


def rows_of(names, where=lambda op, sample: True):
    """Per law and row a parameter: the numbered samples that concern the law."""
    for law in names:
        rows = {}
        for op, i, sample in CASES:
            if laws.concerns(law, op, sample) and where(op, sample):
                rows.setdefault(op.name, (op, []))[1].append((i, sample))
        for op, samples in rows.values():
            yield pytest.param(law, op, samples, id=f"{law}-{op.name}")


def apply(law, op, samples, *args):
    """Run every sample; fail with a line for each that fails, skip where none is applicable."""
    failures, reasons = [], []
    for i, sample in samples:
        try:
            law(op, sample, *args)
        except laws.NotApplicable as reason:
            reasons.append(f"sample {i}: {reason}")
        except Exception as error:
            failures.append((f"sample {i}, {sample}: {type(error).__name__}: {error}", error))
    if failures:
        raise AssertionError("\n".join(text for text, _ in failures)) from failures[0][1]
    if len(reasons) == len(samples):
        pytest.skip("; ".join(reasons))
