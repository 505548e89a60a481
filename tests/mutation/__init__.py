"""Mutation testing of `check`: faults planted into the simulator's kernels, chosen at run time."""
