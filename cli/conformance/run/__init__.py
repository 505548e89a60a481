"""How cases run: workers, references, forms, verdicts."""
