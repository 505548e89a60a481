"""How torch's names are spelled on top of rows: publishing, creation, indexing, printing."""
