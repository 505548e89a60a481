"""What a verdict is made of: cases, references, metrics, tiers, guards, isolation; prints nothing.

docs/conformance.md says what each verdict means.
"""
