"""Owns torch.backends.mps's names: there is no Metal device."""


def is_available() -> bool:
    """False."""
    return False


def is_built() -> bool:
    """False."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """False."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """False."""
    return False


def get_name() -> str:
    """No device has a name."""
    return ""


def get_core_count() -> int:
    """No device has cores."""
    return 0
