"""Torch's public surface is here but for what a list says, which may only shrink."""

import pytest

pytest.importorskip("torch", reason="torch is the oracle of names")

from tests.mindtorch import surface

# Words of the list that may be out of date before it is to be written again.
STALE = 40


def test_what_torchs_public_surface_has_is_here():
    now = {(module, word) for module, words in surface.differences().items() for word in words}
    known = {(module, word) for module, words in surface.known().items() for word in words}
    assert sorted(now - known) == [], "new differences: mend them"
    assert len(known - now) <= STALE, "mended: python -m tests.mindtorch.surface --write"


def test_a_difference_is_seen():
    def there(a, b=1, *, c=2): ...
    def other(a, b=2, *, c=2): ...
    def more(a, b=1, *, c=2, out=None, axis=0): ...

    assert not surface.agrees(there, other)
    assert not surface.agrees(there, lambda a, **_: None)
    assert surface.agrees(there, more)
    assert list(surface.of_class(dict, type("dict", (), {}))) == []
    theirs = type("Theirs", (), {"__module__": "torch", "there": there, "gone": there})
    ours = type("Ours", (), {"__module__": "mindtorch", "there": other})
    assert list(surface.of_class(theirs, ours)) == ["~there", "-gone"]
