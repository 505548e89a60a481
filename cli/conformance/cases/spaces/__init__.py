"""Which designed cases a row has: a space of named factors per family of rows."""
