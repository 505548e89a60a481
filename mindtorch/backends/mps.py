"""Owns torch.backends.mps's names: there is no Metal device."""


def is_available() -> bool:
    """False."""
    return False


def is_built() -> bool:
    """False."""
    return False
