"""Settings of torch's compiler: kept as they are set, read by nothing."""

cache_size_limit = recompile_limit = 8
suppress_errors = False
verbose = False
dynamic_shapes = True
automatic_dynamic_shapes = True
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
inline_inbuilt_nn_modules = True
