"""torch.utils.cpp_extension's names: code against torch's C++ is refused."""

from .._compat.refusals import refusals

_NAMES = (
    "BuildExtension", "CUDAExtension", "CppExtension", "SyclExtension", "get_cxx_compiler",
    "include_paths", "is_ninja_available", "library_paths", "load", "load_inline",
    "verify_ninja_availability",
)  # fmt: skip
_WHY = "there is no C++ of torch to build against; mindtorch.library.define takes kernels in Python"

__all__ = list(_NAMES)
__getattr__ = refusals("torch.utils.cpp_extension", _WHY, _NAMES)
