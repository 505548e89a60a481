"""Owns torch's signatures of names that have several, by name; `.name` is a method's.

Written by tests/opdb/signatures.py from what torch 2.13 says of calls that fit none; not edited.
"""
# ruff: noqa: E501

OPTIONS = (
    "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None,"
    " bool pin_memory = False, bool requires_grad = False"
)
TEXT = """
.addmm
 (Tensor mat1, Tensor mat2, *, Number beta = 1, Number alpha = 1)
.addmm_
 (Tensor mat1, Tensor mat2, *, Number beta = 1, Number alpha = 1)
.baddbmm
 (Tensor batch1, Tensor batch2, *, Number beta = 1, Number alpha = 1)
.baddbmm_
 (Tensor batch1, Tensor batch2, *, Number beta = 1, Number alpha = 1)
.bernoulli_
 (Tensor p, *, torch.Generator generator = None)
 (float p = 0.5, *, torch.Generator generator = None)
.bmm
.copy_
 (Tensor other, bool non_blocking = False)
.cuda
 (torch.device device = None, bool non_blocking = False, *, torch.memory_format memory_format = None)
.mm
.new
 (*, torch.device device = None)
 (torch.Storage storage)
 (Tensor other)
 (tuple of ints size, *, torch.device device = None)
 (object data, *, torch.device device = None)
.nonzero
 ()
 (*, bool as_tuple)
.random_
 (*, torch.Generator generator = None)
 (int from, int to, *, torch.Generator generator = None)
 (int to, *, torch.Generator generator = None)
.set_
 ()
 (torch.Storage source)
 (torch.Storage source, int storage_offset, tuple of ints size, tuple of ints stride = None)
 (Tensor source)
 (Tensor source, int storage_offset, tuple of ints size, tuple of ints stride = None)
.to
 (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
 (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
 (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
.to_sparse
 (*, torch.layout layout = None, tuple of ints blocksize = None, int dense_dim = None)
 (int sparse_dim)
.type
 (object dtype = None, bool non_blocking = False, *, torch.memory_format memory_format = None)
.view
 (torch.dtype dtype)
 (tuple of ints size)
.where
 (Tensor condition, Tensor other)
 (Tensor condition, Number other)
add
 (Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)
addbmm
 (Tensor input, Tensor batch1, Tensor batch2, *, Number beta = 1, Number alpha = 1, Tensor out = None)
addcdiv
 (Tensor input, Tensor tensor1, Tensor tensor2, *, Number value = 1, Tensor out = None)
addcmul
 (Tensor input, Tensor tensor1, Tensor tensor2, *, Number value = 1, Tensor out = None)
addmm
 (Tensor input, Tensor mat1, Tensor mat2, *, Number beta = 1, Number alpha = 1, Tensor out = None)
 (Tensor input, Tensor mat1, Tensor mat2, torch.dtype out_dtype, *, Number beta = 1, Number alpha = 1, Tensor out = None)
addmv
 (Tensor input, Tensor mat, Tensor vec, *, Number beta = 1, Number alpha = 1, Tensor out = None)
addmv_
 (Tensor input, Tensor mat, Tensor vec, *, Number beta = 1, Number alpha = 1)
addr
 (Tensor input, Tensor vec1, Tensor vec2, *, Number beta = 1, Number alpha = 1, Tensor out = None)
all
 (Tensor input, *, Tensor out = None)
 (Tensor input, tuple of ints dim = None, bool keepdim = False, *, Tensor out = None)
 (Tensor input, int dim, bool keepdim = False, *, Tensor out = None)
any
 (Tensor input, *, Tensor out = None)
 (Tensor input, tuple of ints dim = None, bool keepdim = False, *, Tensor out = None)
 (Tensor input, int dim, bool keepdim = False, *, Tensor out = None)
arange
 (Number end, *, Tensor out = None, <options>)
 (Number start, Number end, *, <options>)
 (Number start, Number end, Number step = 1, *, Tensor out = None, <options>)
argsort
 (Tensor input, *, bool stable, int dim = -1, bool descending = False, Tensor out = None)
 (Tensor input, int dim = -1, bool descending = False)
baddbmm
 (Tensor input, Tensor batch1, Tensor batch2, *, Number beta = 1, Number alpha = 1, Tensor out = None)
 (Tensor input, Tensor batch1, Tensor batch2, torch.dtype out_dtype, *, Number beta = 1, Number alpha = 1, Tensor out = None)
bartlett_window
 (int window_length, *, <options>)
 (int window_length, bool periodic, *, <options>)
bernoulli
 (Tensor input, *, torch.Generator generator = None, Tensor out = None)
 (Tensor input, float p, *, torch.Generator generator = None)
bitwise_and
 (Tensor input, Tensor other, *, Tensor out = None)
 (Number self, Tensor other)
 (Tensor input, Number other, *, Tensor out = None)
bitwise_left_shift
 (Tensor input, Tensor other, *, Tensor out = None)
 (Number self, Tensor other)
 (Tensor input, Number other, *, Tensor out = None)
bitwise_or
 (Tensor input, Tensor other, *, Tensor out = None)
 (Number self, Tensor other)
 (Tensor input, Number other, *, Tensor out = None)
bitwise_right_shift
 (Tensor input, Tensor other, *, Tensor out = None)
 (Number self, Tensor other)
 (Tensor input, Number other, *, Tensor out = None)
bitwise_xor
 (Tensor input, Tensor other, *, Tensor out = None)
 (Number self, Tensor other)
 (Tensor input, Number other, *, Tensor out = None)
blackman_window
 (int window_length, *, <options>)
 (int window_length, bool periodic, *, <options>)
bmm
 (Tensor input, Tensor mat2, *, Tensor out = None)
 (Tensor input, Tensor mat2, torch.dtype out_dtype, *, Tensor out = None)
bucketize
 (Tensor input, Tensor boundaries, *, bool out_int32 = False, bool right = False, Tensor out = None)
 (Number self, Tensor boundaries, *, bool out_int32 = False, bool right = False)
clamp
 (Tensor input, Tensor min = None, Tensor max = None, *, Tensor out = None)
 (Tensor input, Number min = None, Number max = None, *, Tensor out = None)
clamp_
 (Tensor input, Tensor min = None, Tensor max = None)
 (Tensor input, Number min = None, Number max = None)
clamp_max
 (Tensor input, Tensor max, *, Tensor out = None)
 (Tensor input, Number max, *, Tensor out = None)
clamp_max_
 (Tensor input, Tensor max)
 (Tensor input, Number max)
clamp_min
 (Tensor input, Tensor min, *, Tensor out = None)
 (Tensor input, Number min, *, Tensor out = None)
clamp_min_
 (Tensor input, Tensor min)
 (Tensor input, Number min)
clip
 (Tensor input, Tensor min = None, Tensor max = None, *, Tensor out = None)
 (Tensor input, Number min = None, Number max = None, *, Tensor out = None)
clip_
 (Tensor input, Tensor min = None, Tensor max = None)
 (Tensor input, Number min = None, Number max = None)
conv1d
 (Tensor input, Tensor weight, Tensor bias = None, tuple of ints stride = 1, tuple of ints padding = 0, tuple of ints dilation = 1, int groups = 1)
 (Tensor input, Tensor weight, Tensor bias = None, tuple of ints stride = 1, str padding = "valid", tuple of ints dilation = 1, int groups = 1)
conv2d
 (Tensor input, Tensor weight, Tensor bias = None, tuple of ints stride = 1, tuple of ints padding = 0, tuple of ints dilation = 1, int groups = 1)
 (Tensor input, Tensor weight, Tensor bias = None, tuple of ints stride = 1, str padding = "valid", tuple of ints dilation = 1, int groups = 1)
conv3d
 (Tensor input, Tensor weight, Tensor bias = None, tuple of ints stride = 1, tuple of ints padding = 0, tuple of ints dilation = 1, int groups = 1)
 (Tensor input, Tensor weight, Tensor bias = None, tuple of ints stride = 1, str padding = "valid", tuple of ints dilation = 1, int groups = 1)
copysign
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
count_nonzero
 (Tensor input, int dim = None)
 (Tensor input, tuple of ints dim)
ctc_loss
 (Tensor log_probs, Tensor targets, tuple of ints input_lengths, tuple of ints target_lengths, int blank = 0, int reduction = at::Reduction::Mean, bool zero_infinity = False)
 (Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank = 0, int reduction = at::Reduction::Mean, bool zero_infinity = False)
cumulative_trapezoid
 (Tensor y, Tensor x, *, int dim = -1)
 (Tensor y, *, Number dx = 1, int dim = -1)
div
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Tensor other, *, str rounding_mode, Tensor out = None)
 (Tensor input, Number other, *, str rounding_mode)
divide
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Tensor other, *, str rounding_mode, Tensor out = None)
 (Tensor input, Number other)
 (Tensor input, Number other, *, str rounding_mode)
dsplit
 (Tensor input, int sections)
 (Tensor input, tuple of ints indices)
eq
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
eye
 (int n, *, Tensor out = None, <options>)
 (int n, int m, *, Tensor out = None, <options>)
fill
 (Tensor input, Tensor value)
 (Tensor input, Number value)
fill_
 (Tensor input, Tensor value)
 (Tensor input, Number value)
float_power
 (Tensor input, Tensor exponent, *, Tensor out = None)
 (Number self, Tensor exponent, *, Tensor out = None)
 (Tensor input, Number exponent, *, Tensor out = None)
floor_divide
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other)
fmod
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
ge
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
gradient
 (Tensor input, *, tuple of ints dim, int edge_order = 1)
 (Tensor input, *, Number spacing, tuple of ints dim, int edge_order = 1)
 (Tensor input, *, Number spacing = None, int dim = None, int edge_order = 1)
 (Tensor input, *, tuple of Scalars spacing, int dim = None, int edge_order = 1)
 (Tensor input, *, tuple of Scalars spacing, tuple of ints dim, int edge_order = 1)
 (Tensor input, *, tuple of Tensors spacing, int dim = None, int edge_order = 1)
 (Tensor input, *, tuple of Tensors spacing, tuple of ints dim, int edge_order = 1)
greater
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
greater_equal
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
gt
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
hamming_window
 (int window_length, *, <options>)
 (int window_length, bool periodic, *, <options>)
 (int window_length, bool periodic, float alpha, *, <options>)
 (int window_length, bool periodic, float alpha, float beta, *, <options>)
hann_window
 (int window_length, *, <options>)
 (int window_length, bool periodic, *, <options>)
histogram
 (Tensor input, Tensor bins, *, Tensor weight = None, bool density = False, tuple of Tensors out = None)
 (Tensor input, int bins = 100, *, tuple of floats range = None, Tensor weight = None, bool density = False, tuple of Tensors out = None)
histogramdd
 (Tensor input, int bins, tuple of floats range = None, Tensor weight = None, bool density = False)
 (Tensor input, tuple of ints bins, tuple of floats range = None, Tensor weight = None, bool density = False)
 (Tensor input, tuple of Tensors bins, tuple of floats range = None, Tensor weight = None, bool density = False)
hsplit
 (Tensor input, int sections)
 (Tensor input, tuple of ints indices)
index_fill
 (Tensor input, int dim, Tensor index, Tensor value)
 (Tensor input, int dim, Tensor index, Number value)
is_autocast_enabled
 (str device_type)
 ()
isin
 (Tensor elements, Tensor test_elements, *, bool assume_unique = False, bool invert = False, Tensor out = None)
 (Number element, Tensor test_elements, *, bool assume_unique = False, bool invert = False, Tensor out = None)
 (Tensor elements, Number test_element, *, bool assume_unique = False, bool invert = False, Tensor out = None)
kaiser_window
 (int window_length, *, <options>)
 (int window_length, bool periodic, *, <options>)
 (int window_length, bool periodic, float beta, *, <options>)
le
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
lerp
 (Tensor input, Tensor end, Tensor weight, *, Tensor out = None)
 (Tensor input, Tensor end, Number weight, *, Tensor out = None)
less
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
less_equal
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
linalg_cond
 (Tensor input, Number p = None, *, Tensor out = None)
 (Tensor input, str p, *, Tensor out = None)
linalg_matrix_norm
 (Tensor input, Number ord, tuple of ints dim = {-2,-1}, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)
 (Tensor input, str ord = "fro", tuple of ints dim = {-2,-1}, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)
linalg_matrix_rank
 (Tensor input, *, Tensor atol = None, Tensor rtol = None, bool hermitian = False, Tensor out = None)
 (Tensor input, *, float atol = None, float rtol = None, bool hermitian = False, Tensor out = None)
 (Tensor input, Tensor tol, bool hermitian = False, *, Tensor out = None)
 (Tensor input, float tol, bool hermitian = False, *, Tensor out = None)
linalg_norm
 (Tensor input, Number ord = None, tuple of ints dim = None, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)
 (Tensor input, str ord, tuple of ints dim = None, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)
linalg_pinv
 (Tensor input, *, Tensor atol = None, Tensor rtol = None, bool hermitian = False, Tensor out = None)
 (Tensor input, *, float atol = None, float rtol = None, bool hermitian = False, Tensor out = None)
 (Tensor input, Tensor rcond, bool hermitian = False, *, Tensor out = None)
 (Tensor input, float rcond, bool hermitian = False, *, Tensor out = None)
linspace
 (Tensor start, Tensor end, int steps, *, Tensor out = None, <options>)
 (Number start, Tensor end, int steps, *, Tensor out = None, <options>)
 (Tensor start, Number end, int steps, *, Tensor out = None, <options>)
 (Number start, Number end, int steps, *, Tensor out = None, <options>)
logspace
 (Tensor start, Tensor end, int steps, float base = 10.0, *, Tensor out = None, <options>)
 (Number start, Tensor end, int steps, float base = 10.0, *, Tensor out = None, <options>)
 (Tensor start, Number end, int steps, float base = 10.0, *, Tensor out = None, <options>)
 (Number start, Number end, int steps, float base = 10.0, *, Tensor out = None, <options>)
lt
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
masked_fill
 (Tensor input, Tensor mask, Tensor value)
 (Tensor input, Tensor mask, Number value)
max
 (Tensor input, *, Tensor out = None)
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)
mean
 (Tensor input, *, torch.dtype dtype = None, Tensor out = None)
 (Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)
median
 (Tensor input)
 (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)
min
 (Tensor input, *, Tensor out = None)
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)
mm
 (Tensor input, Tensor mat2, *, Tensor out = None)
 (Tensor input, Tensor mat2, torch.dtype out_dtype, *, Tensor out = None)
moveaxis
 (Tensor input, int source, int destination)
 (Tensor input, tuple of ints source, tuple of ints destination)
movedim
 (Tensor input, int source, int destination)
 (Tensor input, tuple of ints source, tuple of ints destination)
multiply
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other)
nanmedian
 (Tensor input)
 (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)
nanquantile
 (Tensor input, Tensor q, int dim = None, bool keepdim = False, *, str interpolation = "linear", Tensor out = None)
 (Tensor input, float q, int dim = None, bool keepdim = False, *, str interpolation = "linear", Tensor out = None)
narrow
 (Tensor input, int dim, Tensor start, int length)
 (Tensor input, int dim, int start, int length)
ne
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
normal
 (Tensor mean, Tensor std, *, torch.Generator generator = None, Tensor out = None)
 (Tensor mean, float std = 1, *, torch.Generator generator = None, Tensor out = None)
 (float mean, Tensor std, *, torch.Generator generator = None, Tensor out = None)
 (float mean, float std, tuple of ints size, *, torch.Generator generator = None, Tensor out = None, <options>)
not_equal
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
nuclear_norm
 (Tensor input, tuple of ints dim, bool keepdim = False, *, Tensor out = None)
 (Tensor input, bool keepdim = False, *, Tensor out = None)
pow
 (Tensor input, Tensor exponent, *, Tensor out = None)
 (Number self, Tensor exponent, *, Tensor out = None)
 (Tensor input, Number exponent, *, Tensor out = None)
prod
 (Tensor input, *, torch.dtype dtype = None)
 (Tensor input, int dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)
quantile
 (Tensor input, Tensor q, int dim = None, bool keepdim = False, *, str interpolation = "linear", Tensor out = None)
 (Tensor input, float q, int dim = None, bool keepdim = False, *, str interpolation = "linear", Tensor out = None)
rand
 (tuple of ints size, *, torch.Generator generator, Tensor out = None, <options>)
 (tuple of ints size, *, Tensor out = None, <options>)
rand_like
 (Tensor input, *, torch.Generator generator, torch.memory_format memory_format = None, <options>)
 (Tensor input, *, torch.memory_format memory_format = None, <options>)
randint
 (int high, tuple of ints size, *, torch.Generator generator, Tensor out = None, <options>)
 (int high, tuple of ints size, *, Tensor out = None, <options>)
 (int low, int high, tuple of ints size, *, torch.Generator generator, Tensor out = None, <options>)
 (int low, int high, tuple of ints size, *, Tensor out = None, <options>)
randint_like
 (Tensor input, int low, int high, *, torch.Generator generator, torch.memory_format memory_format = None, <options>)
 (Tensor input, int low, int high, *, torch.memory_format memory_format = None, <options>)
 (Tensor input, Tensor high, *, torch.Generator generator, torch.memory_format memory_format = None, <options>)
 (Tensor input, Tensor high, *, torch.memory_format memory_format = None, <options>)
 (Tensor input, int high, *, torch.Generator generator, torch.memory_format memory_format = None, <options>)
 (Tensor input, int high, *, torch.memory_format memory_format = None, <options>)
randn
 (tuple of ints size, *, torch.Generator generator, Tensor out = None, <options>)
 (tuple of ints size, *, Tensor out = None, <options>)
randn_like
 (Tensor input, *, torch.Generator generator, torch.memory_format memory_format = None, <options>)
 (Tensor input, *, torch.memory_format memory_format = None, <options>)
randperm
 (int n, *, torch.Generator generator, Tensor out = None, <options>)
 (int n, *, Tensor out = None, <options>)
remainder
 (Tensor input, Tensor other, *, Tensor out = None)
 (Number self, Tensor other)
 (Tensor input, Number other, *, Tensor out = None)
repeat_interleave
 (Tensor input, Tensor repeats, int dim = None, *, int output_size = None)
 (Tensor repeats, *, int output_size = None)
 (Tensor input, int repeats, int dim = None, *, int output_size = None)
result_type
 (Tensor tensor, Tensor other)
 (Number scalar, Tensor tensor)
 (Tensor tensor, Number other)
 (Number scalar1, Number scalar2)
round
 (Tensor input, *, Tensor out = None)
 (Tensor input, *, int decimals, Tensor out = None)
round_
 (Tensor input)
 (Tensor input, *, int decimals)
rsub
 (Tensor input, Tensor other, *, Number alpha = 1)
 (Tensor input, Number other, Number alpha = 1)
scatter
 (Tensor input, int dim, Tensor index, Tensor src, *, Tensor out = None)
 (Tensor input, int dim, Tensor index, Tensor src, *, str reduce, Tensor out = None)
 (Tensor input, int dim, Tensor index, Number value, *, Tensor out = None)
 (Tensor input, int dim, Tensor index, Number value, *, str reduce, Tensor out = None)
searchsorted
 (Tensor sorted_sequence, Tensor input, *, bool out_int32 = False, bool right = False, str side = None, Tensor sorter = None, Tensor out = None)
 (Tensor sorted_sequence, Number self, *, bool out_int32 = False, bool right = False, str side = None, Tensor sorter = None, Tensor out = None)
sort
 (Tensor input, *, bool stable, int dim = -1, bool descending = False, tuple of Tensors out = None)
 (Tensor input, int dim = -1, bool descending = False, *, tuple of Tensors out = None)
sparse_bsc_tensor
 (object ccol_indices, object row_indices, object values, tuple of ints size, *, <options>, bool check_invariants = None)
 (object ccol_indices, object row_indices, object values, *, <options>, bool check_invariants = None)
sparse_bsr_tensor
 (object crow_indices, object col_indices, object values, tuple of ints size, *, <options>, bool check_invariants = None)
 (object crow_indices, object col_indices, object values, *, <options>, bool check_invariants = None)
sparse_compressed_tensor
 (object compressed_indices, object plain_indices, object values, tuple of ints size, *, <options>, bool check_invariants = None)
 (object compressed_indices, object plain_indices, object values, *, <options>, bool check_invariants = None)
sparse_coo_tensor
 (object indices, object values, *, torch.dtype dtype = None, torch.device device = None, bool pin_memory = False, bool requires_grad = False, bool check_invariants = None, bool is_coalesced = None)
 (object indices, object values, tuple of ints size, *, torch.dtype dtype = None, torch.device device = None, bool pin_memory = False, bool requires_grad = False, bool check_invariants = None, bool is_coalesced = None)
 (tuple of ints size, *, torch.dtype dtype = None, torch.device device = None, bool requires_grad = False, bool check_invariants = None)
sparse_csc_tensor
 (object ccol_indices, object row_indices, object values, tuple of ints size, *, <options>, bool check_invariants = None)
 (object ccol_indices, object row_indices, object values, *, <options>, bool check_invariants = None)
sparse_csr_tensor
 (object crow_indices, object col_indices, object values, tuple of ints size, *, <options>, bool check_invariants = None)
 (object crow_indices, object col_indices, object values, *, <options>, bool check_invariants = None)
special_chebyshev_polynomial_t
 (Tensor x, Tensor n, *, Tensor out = None)
 (Number x, Tensor n, *, Tensor out = None)
 (Tensor x, Number n, *, Tensor out = None)
special_chebyshev_polynomial_u
 (Tensor x, Tensor n, *, Tensor out = None)
 (Number x, Tensor n, *, Tensor out = None)
 (Tensor x, Number n, *, Tensor out = None)
special_chebyshev_polynomial_v
 (Tensor x, Tensor n, *, Tensor out = None)
 (Number x, Tensor n, *, Tensor out = None)
 (Tensor x, Number n, *, Tensor out = None)
special_chebyshev_polynomial_w
 (Tensor x, Tensor n, *, Tensor out = None)
 (Number x, Tensor n, *, Tensor out = None)
 (Tensor x, Number n, *, Tensor out = None)
special_hermite_polynomial_h
 (Tensor x, Tensor n, *, Tensor out = None)
 (Number x, Tensor n, *, Tensor out = None)
 (Tensor x, Number n, *, Tensor out = None)
special_hermite_polynomial_he
 (Tensor x, Tensor n, *, Tensor out = None)
 (Number x, Tensor n, *, Tensor out = None)
 (Tensor x, Number n, *, Tensor out = None)
special_laguerre_polynomial_l
 (Tensor x, Tensor n, *, Tensor out = None)
 (Number x, Tensor n, *, Tensor out = None)
 (Tensor x, Number n, *, Tensor out = None)
special_legendre_polynomial_p
 (Tensor x, Tensor n, *, Tensor out = None)
 (Number x, Tensor n, *, Tensor out = None)
 (Tensor x, Number n, *, Tensor out = None)
special_shifted_chebyshev_polynomial_t
 (Tensor x, Tensor n, *, Tensor out = None)
 (Number x, Tensor n, *, Tensor out = None)
 (Tensor x, Number n, *, Tensor out = None)
special_shifted_chebyshev_polynomial_u
 (Tensor x, Tensor n, *, Tensor out = None)
 (Number x, Tensor n, *, Tensor out = None)
 (Tensor x, Number n, *, Tensor out = None)
special_shifted_chebyshev_polynomial_v
 (Tensor x, Tensor n, *, Tensor out = None)
 (Number x, Tensor n, *, Tensor out = None)
 (Tensor x, Number n, *, Tensor out = None)
special_shifted_chebyshev_polynomial_w
 (Tensor x, Tensor n, *, Tensor out = None)
 (Number x, Tensor n, *, Tensor out = None)
 (Tensor x, Number n, *, Tensor out = None)
special_xlog1py
 (Tensor input, Tensor other, *, Tensor out = None)
 (Number self, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
special_xlogy
 (Tensor input, Tensor other, *, Tensor out = None)
 (Number self, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
special_zeta
 (Tensor input, Tensor other, *, Tensor out = None)
 (Number self, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
spmm
 (Tensor input, Tensor mat2, *, Tensor out = None)
 (Tensor input, Tensor mat2, torch.dtype out_dtype, *, Tensor out = None)
squeeze
 (Tensor input)
 (Tensor input, int dim)
 (Tensor input, tuple of ints dim)
squeeze_copy
 (Tensor input, *, Tensor out = None)
 (Tensor input, int dim, *, Tensor out = None)
 (Tensor input, tuple of ints dim, *, Tensor out = None)
sspaddmm
 (Tensor input, Tensor mat1, Tensor mat2, *, Number beta = 1, Number alpha = 1, Tensor out = None)
std
 (Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False, *, Tensor out = None)
 (Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False, Tensor out = None)
 (Tensor input, bool unbiased = True)
std_mean
 (Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False)
 (Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False)
 (Tensor input, bool unbiased = True)
sub
 (Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)
subtract
 (Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)
 (Tensor input, Number other, Number alpha = 1)
sum
 (Tensor input, *, torch.dtype dtype = None)
 (Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)
tensor_split
 (Tensor input, tuple of ints indices, int dim = 0)
 (Tensor input, Tensor tensor_indices_or_sections, int dim = 0)
 (Tensor input, int sections, int dim = 0)
trapezoid
 (Tensor y, Tensor x, *, int dim = -1)
 (Tensor y, *, Number dx = 1, int dim = -1)
trapz
 (Tensor y, *, float dx = 1, int dim = -1)
 (Tensor y, Tensor x, *, int dim = -1)
true_divide
 (Tensor input, Tensor other, *, Tensor out = None)
 (Tensor input, Number other)
var
 (Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False, *, Tensor out = None)
 (Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False, Tensor out = None)
 (Tensor input, bool unbiased = True)
var_mean
 (Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False)
 (Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False)
 (Tensor input, bool unbiased = True)
view_copy
 (Tensor input, torch.dtype dtype, *, Tensor out = None)
 (Tensor input, tuple of ints size, *, Tensor out = None)
vsplit
 (Tensor input, int sections)
 (Tensor input, tuple of ints indices)
where
 (Tensor condition)
 (Tensor condition, Tensor input, Tensor other, *, Tensor out = None)
 (Tensor condition, Number self, Tensor other)
 (Tensor condition, Tensor input, Number other)
 (Tensor condition, Number self, Number other)
xlogy
 (Tensor input, Tensor other, *, Tensor out = None)
 (Number self, Tensor other, *, Tensor out = None)
 (Tensor input, Number other, *, Tensor out = None)
xlogy_
 (Tensor input, Tensor other)
 (Tensor input, Number other)
"""
