"""Owns what torch's settings are at: of precision, of deterministic algorithms, of fresh memory."""

from .._compat.warn_once import warn
from .recording import unrepeatable

SETTINGS: dict[str, bool | int | str] = {
    "precision": "highest", "deterministic": False, "warn_only": False, "fill": True,
}  # fmt: skip


def alert_not_deterministic(name: str) -> None:
    """RuntimeError, or a warning with `warn_only`, under use_deterministic_algorithms: in torch,
    what `name` calls writes in any order."""
    if not SETTINGS["deterministic"]:
        return
    unrepeatable()
    start = f"{name} does not have a deterministic implementation, but you set"
    end = (
        "file an issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding"
        " deterministic support for this operation."
    )
    if SETTINGS["warn_only"]:
        text = f"{start} 'torch.use_deterministic_algorithms(True, warn_only=True)'. You can {end}"
        warn(text)
        return
    raise RuntimeError(
        f"{start} 'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for"
        " this operation, or you can use the 'warn_only=True' option, if that's acceptable for your"
        f" application. You can also {end}"
    )
