"""The command `completion`."""
