"""Guards object to what numbers let pass, and stay silent on good results."""

import numpy as np
from mindtorch_npu.judge import guards
from mindtorch_npu.judge.metrics import errors
from mindtorch_npu.judge.precision import rounded


def test_lost_values_are_seen_however_small_they_are():
    golden = np.full(4096, 1e-6)
    assert guards.lost(np.zeros(4096, np.float32), golden, "float32")


def test_mostly_zero_outputs_prove_little():
    golden = np.zeros(100)
    golden[:10] = 1
    assert "prove little" in guards.zeros(rounded(golden, "float32"), "rounded")
    assert not guards.zeros(rounded(golden[:40], "float32"), "rounded")
    assert not guards.lost(rounded(golden, "float32"), golden, "float32")


def test_half_zeros_of_relu_are_no_objection():
    golden = np.maximum(np.random.default_rng(0).standard_normal(1000), 0)
    assert not guards.zeros(rounded(golden, "float16"), "rounded")
    few = np.arange(80) % 3 == 0  # two thirds of 80 come by chance once in some hundred draws
    assert not guards.zeros(few.astype(np.float32), "rounded")
    many = np.arange(8000) % 4 == 0
    assert "prove little" in guards.zeros(many.astype(np.float32), "rounded")


def test_constant_reference_proves_nothing():
    assert guards.constant(np.ones(100))
    assert not guards.constant(np.arange(100))
    assert not guards.constant(np.ones(4))


def test_signs_are_few_and_vary_but_nearly_always_one_value_proves_nothing():
    signs = np.sign(np.random.default_rng(0).standard_normal(1023))
    assert not guards.constant(signs)
    signs[40:] = 1
    assert guards.constant(signs) == "the reference has 2 different values among 1023"


def test_unwritten_tail_is_judged_alone():
    golden = np.random.default_rng(0).uniform(1, 2, 4096)
    got = rounded(golden, "float16")
    assert not guards.tail(errors(got, golden, "float16"), 1.0)
    got[-8:] = 0
    assert "last 16 elements" in guards.tail(errors(got, golden, "float16"), 1.0)


def test_second_run_must_agree_in_every_bit_but_nan():
    a = np.array([1.0, np.nan, 2.0])
    assert not guards.second_run(a, a.copy())
    assert "1 of 3" in guards.second_run(a, np.array([1.0, np.nan, 2.5]))


def test_trespass_counts_what_changed():
    assert guards.trespass(0, 0) == []
    assert guards.trespass(1, 2) == [
        "1 element of an input's memory changed",
        "2 elements outside of the output changed",
    ]


def test_a_difference_of_equals_may_be_zero():
    assert not guards.lost(np.zeros((), np.float32), np.array(1.8e-12), "float32")
    assert guards.lost(np.zeros((), np.float32), np.array(1.8e-6), "float32")
    assert guards.lost(np.zeros(3, np.complex64), np.array([1 + 1j, 2j, 3 + 1j]), "complex64")
