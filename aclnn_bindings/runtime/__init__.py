"""How it runs: devices, contexts, streams, events and memory of one session."""
