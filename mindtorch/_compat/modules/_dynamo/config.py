"""Settings of torch's compiler: kept as they are set; few are read here."""

from __future__ import annotations

from mindtorch.utils._config_module import install_config_module

log_file_name = None
verbose = False
verify_correctness = False
debug_backend_override = ""
debug_inductor_config_override = ""
debug_dynamo_config_override = ""
leaf_function_validate_outputs = False
leaf_function_check_escaped_gradients = False
minimum_call_count = 1
dead_code_elimination = None
replay_side_effects = True
generate_pycode = False
side_effect_replay_policy = "info"
recompile_limit = 8
accumulated_recompile_limit = 256
skip_code_recursive_on_recompile_limit_hit = True
fail_on_recompile_limit_hit = False
specialize_int = False
specialize_float = False
dynamic_shapes = True
use_lazy_graph_module = True
assume_static_by_default = True
_shapes_spec = None
automatic_dynamic_shapes = True
automatic_dynamic_shapes_mark_as = "dynamic"
automatic_dynamic_exclusion_guard = False
log_graph_in_out_metadata = False
force_parameter_static_shapes = True
force_nn_module_property_static_shapes = True
allow_ignore_mark_dynamic = False
guard_nn_modules = True
guard_nn_modules_using_dict_tags = True
prepare_freezing = False
traceable_tensor_subclasses = set[object]()
nontraceable_tensor_subclasses = set[object]()
suppress_errors = False
replay_record_enabled = False
rewrite_assert_with_torch_assert = True
disable = False
cprofile = False
dynamo_profiler = False
skipfiles_inline_module_allowlist = dict[str, object]()
allowed_functions_module_string_ignorelist = {
    "torch._decomp",
    "torch._prims",
    "torch._refs",
    "torch.distributions",
    "torch.testing",
}
repro_after = None
repro_level = 2
repro_forward_only = False
repro_tolerance = 0.001
repro_ignore_non_fp = False
same_two_models_use_fp64 = True
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
prefer_deferred_runtime_asserts_over_guards = False
force_unspec_int_unbacked_size_like_on_torchrec_kjt = False
allow_unspec_int_on_nn_module = False
optimize_ddp = True
do_not_emit_runtime_asserts = False
skip_torchrec = True
dont_skip_tracing = False
optimize_ddp_lazy_compile = False
use_lamba_guard_for_object_aliasing = True
skip_fsdp_guards = True
skip_nnmodule_hook_guards = True
skip_no_tensor_aliasing_guards_on_parameters = True
skip_tensor_guards_with_matching_dict_tags = True
skip_guards_on_constant_func_defaults = False
assume_dunder_attributes_remain_unchanged = True
use_recursive_dict_tags_for_guards = False
max_saved_pointers_for_recursive_dict_tags_check = 256
raise_on_ctx_manager_usage = True
raise_on_unsafe_aot_autograd = False
error_on_nested_jit_trace = True
error_on_nested_fx_trace = True
force_compile_during_fx_trace = False
allow_rnn = False
capture_sparse_compute = True
error_on_recompile = False
report_guard_failures = True
trace_numpy = True
trace_autograd_ops = False
numpy_default_float = "float64"
numpy_default_complex = "complex128"
numpy_default_int = "int64"
use_numpy_random_stream = False
enable_cpp_guard_manager = True
enable_cpp_symbolic_shape_guards = False
enable_trace_contextlib = True
enable_trace_unittest = False
enable_trace_load_build_class = False
enable_faithful_generator_behavior = True
inline_inbuilt_nn_modules = True
nested_graph_breaks = False
error_on_dynamo_callback_in_fullgraph_compiled_code = False
install_free_tensors = False
install_free_tensors_for_export = True
enable_cpp_framelocals_guard_eval = True
use_graph_deduplication = False
track_nodes_for_deduplication = False
graph_deduplication_lint = False
issue_3_13_0_warning = True
allow_empty_graphs = False
debug_force_nested_calls = False
debug_force_graph_break_on_leaf_return = False
debug_disable_compile_counter = False
record_compile_time_instruction_count = False
_save_config_ignore = {
    "constant_functions",
    "repro_after",
    "repro_level",
    "skipfiles_inline_module_allowlist",
}
cudagraph_backend_keep_input_mutation = False
cudagraph_backend_support_input_mutation = False
only_allow_pt2_compliant_ops = False
capture_autograd_function = True
capture_func_transforms = True
capture_profiler_record_function = False
log_compilation_metrics = True
reorderable_logging_functions = set[object]()
ignore_logging_functions = set[object]()
_autograd_backward_strict_mode_banned_ops = ["layout", "is_neg", "is_conj", "is_pinned"]
_autograd_backward_strict_mode_conditional_banned_ops = [
    "stride",
    "storage_offset",
    "is_contiguous",
]
fake_tensor_cache_enabled = True
fake_tensor_cache_crosscheck_enabled = False
fake_tensor_disable_inference_mode = True
caching_precompile = False
strict_precompile = False
compiled_autograd = False
enable_dynamo_decompositions = True
graph_break_on_nn_param_ctor = True
inline_torch_dispatch_torch_compile = True
skip_fwd_side_effects_in_bwd_under_checkpoint = False
compiled_autograd_kwargs_override = dict[str, object]()
enable_compiler_collectives = False
enable_p2p_compilation = False
automatic_dynamic_local_pgo = True
automatic_dynamic_remote_pgo = None
_unsafe_skip_fsdp_module_guards = False
pt2_compile_id_prefix = None
run_gc_after_compile = True
constant_fold_autograd_profiler_enabled = False
wrap_top_frame = False
record_runtime_overhead = True
enable_aot_compile = True
_custom_ops_profile = None
enable_invoke_subgraph_regional_compile = False
inline_invoke_subgraph = False
inline_single_use_invoke_subgraph = True
invalidate_compile_context_weakrefs = None

install_config_module(__name__, {
    "accumulated_cache_size_limit": "accumulated_recompile_limit",
    "cache_size_limit": "recompile_limit",
    "fail_on_cache_limit_hit": "fail_on_recompile_limit_hit",
    "ignore_logger_methods": "ignore_logging_functions",
    "skip_code_recursive_on_cache_limit_hit": "skip_code_recursive_on_recompile_limit_hit",
})  # fmt: skip
