"""The command `catalog`."""
