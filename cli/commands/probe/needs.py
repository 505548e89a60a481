"""Which ACLNN operators the declared torch operators call."""

from __future__ import annotations


def needed_by_check() -> tuple[str, ...]:
    """Their names in order of declaration; none when mindtorch cannot be imported here."""
    try:
        import mindtorch  # noqa: F401  (importing it fills the table)
        from mindtorch.ops.spec import OPS
    except ImportError:
        return ()
    calls = [call for op in OPS.values() for call in op.kernels.aclnn]
    return tuple(dict.fromkeys(call.name for call in calls))
