"""Who handles a call: keys, entries, plans and the layers above the backends."""
