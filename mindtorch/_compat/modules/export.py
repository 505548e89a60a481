"""torch.export's names: nothing is traced, exporting is refused."""

from mindtorch._compat.refusals import refusals

_NAMES = (
    "AdditionalInputs", "Constraint", "CustomDecompTable", "Dim", "ExportBackwardSignature",
    "ExportGraphSignature", "ExportedProgram", "FlatArgsAdapter", "ModuleCallEntry",
    "ModuleCallSignature", "ShapesCollection", "UnflattenedModule", "default_decompositions",
    "dims", "draft_export", "export", "load", "register_dataclass", "save", "unflatten",
)  # fmt: skip
_WHY = "mindtorch runs eagerly and exports no graphs"

__path__: list[str] = []  # what is below is in absent_modules.txt
__all__ = list(_NAMES)
__getattr__ = refusals("torch.export", _WHY, _NAMES)
