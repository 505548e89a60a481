"""What decompositions leave open passes, what they do not is compared."""

import numpy as np
from mindtorch_npu.conformance.run.phases import aligned
from mindtorch_npu.conformance.run.reference import Golden

RNG = np.random.default_rng(3)


def settled(name, reference, got):
    values = aligned(name, Golden(reference, reference, [None] * len(reference)),
                     [(a.dtype.name, a) for a in got]).values  # fmt: skip
    return all(np.allclose(v, g) for v, g in zip(values, got, strict=True))


def complex_matrix(*shape):
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


def test_signs_and_phases_of_vectors_are_free_together():
    q, r = np.linalg.qr(complex_matrix(2, 5, 3))
    turn = np.exp(1j * RNG.normal(size=3))
    assert settled("linalg_qr", [q, r], [q * turn, np.conjugate(turn)[:, None] * r])
    assert not settled("linalg_qr", [q, r], [q * turn, r])
    assert not settled("linalg_qr", [q, r], [q[..., ::-1], r])


def test_vectors_of_no_value_are_free_as_a_space():
    u, s, vh = np.linalg.svd(RNG.normal(size=(6, 3)))
    other = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    moved = np.concatenate([-u[:, :3], u[:, 3:] @ other], 1)
    assert settled("linalg_svd", [u, s, vh], [moved, s, -vh])
    stretched = np.concatenate([u[:, :3], 1.01 * u[:, 3:]], 1)
    assert not settled("linalg_svd", [u, s, vh], [stretched, s, vh])
    assert not settled("linalg_svd", [u, s, vh], [u, s, -vh])


def test_rest_of_rows_and_what_is_not_asked_for_stay():
    values, vectors = np.linalg.eigh(np.diag([1.0, 2.0, 5.0]))
    assert settled("linalg_eigh", [values, vectors], [values, -vectors])
    assert not settled("linalg_eigh", [values, vectors], [values + 1, -vectors])
    r = np.triu(RNG.normal(size=(3, 3)))
    assert settled("linalg_qr", [np.zeros(0), r], [np.zeros(0), -r])
