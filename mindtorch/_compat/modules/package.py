"""torch.package's names: archives of code are refused."""

from mindtorch._compat.refusals import refusals

_NAMES = (
    "Directory", "EmptyMatchError", "GlobGroup", "Importer", "ObjMismatchError",
    "ObjNotFoundError", "OrderedImporter", "PackageExporter", "PackageImporter",
    "PackagingError", "is_from_package", "sys_importer",
)  # fmt: skip
_WHY = "mindtorch packs no code; torch.save writes tensors and state dicts"

__all__ = list(_NAMES)
__getattr__ = refusals("torch.package", _WHY, _NAMES)
