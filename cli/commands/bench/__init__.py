"""The command `bench`: what is timed, how, and what a difference means."""
