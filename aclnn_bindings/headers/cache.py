"""stub"""
def load(dirs, cache=True):
    from .tree import parse_tree
    return parse_tree(dirs)
