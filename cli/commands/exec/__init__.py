"""The command `exec`: programs that import torch, run on mindtorch."""
