"""Where ops run: one package per device, what they share in `common`, who is there in `registry`."""
