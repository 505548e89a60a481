"""The command `run`: any program, with layers between it and an install."""
