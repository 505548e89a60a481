"""The command `probe`."""
