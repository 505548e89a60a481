"""torch.utils.model_zoo: torch.hub's download under its older name."""

from ..hub import load_state_dict_from_url as load_url, tqdm

__all__ = ["load_url", "tqdm"]
