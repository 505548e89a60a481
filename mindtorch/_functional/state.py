"""Owns what torch's settings are at: of precision, of deterministic algorithms, of fresh memory."""

SETTINGS: dict[str, bool | int | str] = {
    "precision": "highest", "deterministic": False, "warn_only": False, "fill": True,
}  # fmt: skip
