"""How long operators take: workloads, timers, statistics, comparison, roofline; prints nothing.

docs/conformance.md says what each number means. Device, host and end-to-end times never mix.
"""
