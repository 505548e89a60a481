"""What is kept of a run: journal, bundles, known issues."""
