"""Case ids are complete and readable; a wrong one says what is possible."""

import itertools

import pytest
from mindtorch_npu.conformance.cases.case import (
    CONTRACTS,
    DTYPES,
    FILLS,
    FORMS,
    LAYOUTS,
    SHAPES,
    Case,
    CaseNameError,
    parse,
)


def test_every_id_gives_its_case_back():
    axes = itertools.product(FORMS, (0, 12), ("", *DTYPES[::4]), LAYOUTS, SHAPES, FILLS)
    for form, sample, dtype, layout, shape, fill in axes:
        case = Case("max.dim", form, sample, dtype, layout, shape, fill)
        assert parse(case.id) == case


def test_contract_ids_give_their_cases_back():
    for form in CONTRACTS:
        case = Case("aclnnAdd", form, detail="self" if form == "contract-null" else "")
        assert parse(case.id) == case


def test_words_of_different_axes_never_collide():
    words = [*LAYOUTS, *SHAPES, *FILLS, *DTYPES]
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("add", "FORM is one of"),
        ("add/sideways", "FORM is one of"),
        ("add/functional/s0/float17", "'float17' is no dtype, layout"),
        ("add/functional/s0/float16/float32", "dtype is given twice"),
    ],
)
def test_wrong_id_says_what_is_possible(text, says):
    with pytest.raises(CaseNameError, match=says):
        parse(text)
