"""The command `stubs`."""
