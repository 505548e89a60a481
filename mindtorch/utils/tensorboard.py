"""torch.utils.tensorboard: needs the package tensorboard, as in torch; its writers are refused."""

import importlib

from .._compat.refusals import refused

importlib.import_module("tensorboard")  # ModuleNotFoundError without it

_WHY = "mindtorch writes no event files; tensorboard's own writer takes numbers and arrays"
SummaryWriter = refused("torch.utils.tensorboard.SummaryWriter", _WHY)
FileWriter = refused("torch.utils.tensorboard.FileWriter", _WHY)
