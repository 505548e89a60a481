"""Owns torch.ao's names for code that mentions quantisation: everything of it is refused."""
