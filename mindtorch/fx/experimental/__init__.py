"""torch.fx.experimental: what libraries ask about tracing, which never happens here."""
