"""The command `sim`."""
