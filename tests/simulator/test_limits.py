"""Limits of formats, dtypes, values and products hold on the simulator, each with its evidence."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import aclnn_bindings
from aclnn_bindings.install import products
from aclnn_bindings.runtime.status import AclError

FIELD = Path(aclnn_bindings.__file__).parent / "catalogs/field/limits.json"
ROWS: dict[str, list[dict[str, Any]]] = json.loads(FIELD.read_text())
TABLES = ("products", "dtypes", "formats", "values")
# Calls on a product, and what it answers: 0, or a code and words of the message.
CHILD = """
import json, sys
import aclnn_bindings
from aclnn_bindings.runtime.status import AclError
cann = aclnn_bindings.open(simulator=True)
t = lambda dtype, *shape: cann.empty(shape, dtype)
for line in sys.stdin:
    try:
        eval(line, {"o": cann.ops, "t": t})
        cann.runtime.current_stream().synchronize()
        print(0)
    except AclError as error:
        print(error.code, error.message.replace(chr(10), " "))
"""
F, H = '"FLOAT"', '"FLOAT16"'
# Its kernel checks dtypes itself; the product has no bfloat16.
QUANT = (
    'o["aclnnAscendQuant"](t("{dtype}", 2, 4), t("{dtype}", 4), None, False, "round", 2, '
    't("INT8", 2, 4))'
)
CALLS = {
    "Ascend310P3": [
        (f'o["aclnnAdd"](t({F}, 2), t({F}, 2), 1.0, t({F}, 2))', "0"),
        (f'o["aclnnInplaceSub"](t({F}, 2), t({F}, 2), 1.0)', "0"),
        (f'o["aclnnDiv"](t({H}, 2), t({H}, 2), t({H}, 2))', "0"),
        (f'o["aclnnMatmul"](t({F}, 2, 3), t({F}, 3, 4), t({F}, 2, 4), 0)', "161002"),
        (f'o["aclnnMatmul"](t({F}, 2, 3), t({F}, 3, 4), t({F}, 2, 4), 1)', "0"),
        (QUANT.format(dtype="FLOAT16"), "0"),
        (QUANT.format(dtype="BFLOAT16"), "161002"),
    ],
    "Ascend310B1": [
        (f'o["aclnnAdd"](t({F}, 2), t({F}, 2), 1.0, t({F}, 2))', "0"),
        (f'o["aclnnMatmul"](t({H}, 2, 3), t({H}, 3, 4), t({H}, 2, 4), 1)', "0"),
        (f'o["aclnnMatmul"](t({F}, 2, 3), t({F}, 3, 4), t({F}, 2, 4), 1)', "161002"),
    ],
    "Ascend910A": [
        (f'o["aclnnMatmul"](t({F}, 2, 3), t({F}, 3, 4), t({F}, 2, 4), 0)',
         "161002 .*not support under keep dtype mode"),
        (f'o["aclnnMatmul"](t({H}, 2, 3), t({H}, 3, 4), t({H}, 2, 4), 0)', "0"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("soc", CALLS)
def test_a_product_takes_and_refuses_what_the_field_says(soc: str) -> None:
    lines = "".join(f"{call}\n" for call, _ in CALLS[soc])
    child = subprocess.run(
        [sys.executable, "-c", CHILD], input=lines, text=True, capture_output=True, check=True,
        env={**os.environ, "ACLSIM_SOC": soc},
    )  # fmt: skip
    answers = child.stdout.splitlines()
    assert len(answers) == len(CALLS[soc])
    for answer, (call, expected) in zip(answers, CALLS[soc], strict=True):
        code, _, words = expected.partition(" .*")
        assert answer.startswith(code), f"{call}: {answer}"
        assert words in answer


def call(cann: Any, op: str, *args: Any) -> None:
    cann.ops[op](*args)
    cann.runtime.current_stream().synchronize()


def test_an_image_in_nd_is_refused_where_the_document_lists_image_formats(nops: Any) -> None:
    cann = nops.cann
    x, y = cann.empty((1, 1, 4, 4), "FLOAT"), cann.empty((1, 1, 2, 2), "FLOAT")
    window = ((2, 2), (2, 2), (0, 0), False, True, 0, 0)
    with pytest.raises(AclError, match=r"NCHW.* but current is ND") as caught:
        call(cann, "aclnnAvgPool2d", x, *window, y)
    assert caught.value.code == 161002
    images = [t.view(t.shape, None, 0, "NCHW") for t in (x, y)]
    call(cann, "aclnnAvgPool2d", images[0], *window, images[1])


def test_batch_norm_of_an_image_in_nd_fails_inside(nops: Any) -> None:
    cann = nops.cann
    x, y, c = cann.empty((2, 3, 4, 4), "FLOAT"), cann.empty((2, 3, 4, 4), "FLOAT"), (3,)
    rest = [cann.empty(c, "FLOAT") for _ in range(6)]
    with pytest.raises(AclError) as caught:
        call(cann, "aclnnBatchNorm", x, *rest[:4], True, 0.1, 1e-5, y, *rest[4:])
    assert caught.value.code == 561103
    x, y = (t.view(t.shape, None, 0, "NCHW") for t in (x, y))
    call(cann, "aclnnBatchNorm", x, *rest[:4], True, 0.1, 1e-5, y, *rest[4:])


def test_a_sum_of_truths_is_taken_where_self_may_differ_from_out(nops: Any) -> None:
    cann = nops.cann
    mask = cann.empty((4,), "BOOL")
    total = cann.empty((4,), "INT64")
    mask.buffer.write(b"\x01\x00\x01\x01")
    call(cann, "aclnnCumsum", mask, 0, 9, total)
    assert total.numpy().tolist() == [1, 1, 2, 3]
    with pytest.raises(AclError, match="not implemented for DT_BOOL"):
        call(cann, "aclnnCumsumV2", mask, 0, False, False, total)


def test_every_row_has_evidence_and_a_source_and_names_known_operators() -> None:
    for table in TABLES:
        for row in ROWS[table]:
            assert row["evidence"] in ("measured", "client", "document", "header")
            assert row["source"]
            assert all(products.support(op) for op in row["ops"].split())


def test_what_the_field_adds_is_what_tools_say_too() -> None:
    added = products.support("aclnnAdd", "310p")
    assert added is not None
    assert added.on("310p")
    pooled = products.support("aclnnMaxPool2dWithIndicesBackward", "910b")
    assert pooled is not None
    assert pooled.dtypes["indices"] == ("INT32",)
