"""The command `ops`."""
