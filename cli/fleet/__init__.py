"""Many hosts and devices: merged journals, a report for a fleet, a Ray cluster."""
