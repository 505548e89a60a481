"""What exists so that programs written for torch run: its errors, its aliases, its other modules.

Nothing here computes. The core imports from here only texts and tables.
"""
