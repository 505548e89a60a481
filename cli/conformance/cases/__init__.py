"""Which cases there are: samples, shapes, layouts, values, names."""
