// The extension module mindtorch._random._sequential: draws of MT19937's words, one after the other.
//
// Arrays come as writable buffers; they are of float64, of int64 for integers and a permutation, of
// float32 or float64 by the `width` of a fill. `single` says that parameters are float32's numbers,
// in whose precision torch prepares them.
//
// Sources: Marsaglia, Tsang, "A simple method for generating gamma variables" (2000); Hörmann, "The
// transformed rejection method for generating Poisson random variables" (1993); Hörmann, "The
// generation of binomial random variates" (1993); S. Moshier, Cephes Mathematical Library, single
// precision (netlib.org/cephes): logf, sinf, cosf. The order of draws is torch 2.13's, as are the
// products that are fused with sums: its kernels are compiled so where a processor can.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define FUSED __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define FUSED  // other processors fuse, or other compilers make no clones
#endif
#define INLINE static inline __attribute__((always_inline))

// What numpy's bit generators put into their capsule (numpy/random/bitgen.h).
typedef struct {
  void* state;
  uint64_t (*next_uint64)(void*);
  uint32_t (*next_uint32)(void*);
  double (*next_double)(void*);
  uint64_t (*next_raw)(void*);
} Words;

typedef struct {
  Words* words;
  double spare;  // the second normal draw of a pair, NaN while there is none
} Source;

static const double PI = 3.14159265358979323846;

static uint32_t word(Source* source) { return source->words->next_uint32(source->words->state); }

static double uniform(Source* source) {
  uint64_t high = word(source);
  uint64_t both = high << 32 | word(source);
  return (double)(both & ((UINT64_C(1) << 53) - 1)) * ldexp(1.0, -53);
}

static double normal(Source* source) {
  if (!isnan(source->spare)) {
    double kept = source->spare;
    source->spare = NAN;
    return kept;
  }
  double turn = uniform(source), length = uniform(source);
  double radius = sqrt(-2.0 * log1p(-length)), angle = 2.0 * PI * turn;
  source->spare = radius * sin(angle);
  return radius * cos(angle);
}

// The number itself, or rounded to float32: torch computes these steps in the tensor's dtype.
static double rounded(double value, int single) { return single ? (double)(float)value : value; }

static double gamma_draw(Source* source, double alpha, int single) {
  double scale = 1.0;
  if (alpha < 1.0) {
    if (alpha == 0.0) return 0.0;
    scale *= pow(1 - uniform(source), rounded(1.0 / alpha, single));
    alpha = rounded(alpha + 1.0, single);
  }
  const double d = rounded(alpha - (double)(1.0f / 3.0f), single);
  const double c = 1.0 / sqrt(9.0 * d);
  for (;;) {
    double x, y;
    do {
      x = normal(source);
      y = 1.0 + c * x;
    } while (y <= 0);
    const double v = y * y * y, u = 1 - uniform(source), xx = x * x;
    if (u < 1.0 - (double)0.0331f * xx * xx) return scale * d * v;
    if (log(u) < 0.5 * xx + d * (1.0 - v + log(v))) return scale * d * v;
    if (isnan(d)) return d;
  }
}

static double poisson_draw(Source* source, double rate) {
  if (isnan(rate) || isinf(rate)) return rate;
  if (rate == 0) return 0;
  if (rate < 10) {
    const double limit = exp(-rate);
    double product = 1.0;
    for (int64_t count = 0;; ++count)
      if ((product *= uniform(source)) <= limit) return (double)count;
  }
  const double logarithm = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), bound = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = uniform(source) - 0.5, v = uniform(source), side = 0.5 - fabs(u);
    const double k = floor((2 * a / side + b) * u + rate + 0.43);
    if (side >= 0.07 && v <= bound) return k;
    if (k < 0 || (side < 0.013 && v > side)) continue;
    if (log(v) + log(inverse_alpha) - log(a / (side * side) + b) <=
        -rate + k * logarithm - lgamma(k + 1))
      return k;
  }
}

// log k! less the main terms of its series by Stirling.
static double stirling_tail(double k) {
  static const double FIRST[] = {
      0.0810614667953272,  0.0413406959554092,  0.0276779256849983,  0.02079067210376509,
      0.0166446911898211,  0.0138761288230707,  0.0118967099458917,  0.0104112652619720,
      0.00925546218271273, 0.00833056343336287};
  if (k < 10) return FIRST[k > 0 ? (int)k : 0];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

static double gaps_within(Source* source, double count, double prob, int single) {
  const double scale = single ? (double)log1pf((float)-prob) : log1p(-prob);
  double place = 0, successes = 0;
  for (;;) {
    place += ceil(log(uniform(source)) / scale);
    if (!(place <= count)) return successes;
    successes += 1;
  }
}

static double by_rejection(Source* source, double count, double prob, int single) {
  const double mean = rounded(count * prob, single), other = rounded(1 - prob, single);
  const double spread = rounded(sqrt(rounded(mean * other, single)), single);
  const double b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * prob;
  const double c = mean + 0.5, bound = 0.92 - 4.2 / b, odds = rounded(prob / other, single);
  const double alpha = (2.83 + 5.1 / b) * spread, more = rounded(count + 1, single);
  const double mode = floor(rounded(more * prob, single));
  for (;;) {
    const double u = uniform(source) - 0.5;
    double v = uniform(source);
    const double side = 0.5 - fabs(u);
    const double k = rounded(floor((2 * a / side + b) * u + c), single);
    if (!(k >= 0 && k <= count)) continue;
    if (side >= 0.07 && v <= bound) return k;
    v = log(v * alpha / (a / (side * side) + b));
    const double left = rounded(rounded(count - k, single) + 1, single);
    const double height =
        (mode + 0.5) * log((mode + 1) / (odds * (count - mode + 1))) +
        more * log((count - mode + 1) / left) +
        (k + 0.5) * log(odds * left / rounded(k + 1, single)) + stirling_tail(mode) +
        stirling_tail(count - mode) - stirling_tail(k) -
        stirling_tail(rounded(count - k, single));
    if (v <= height) return k;
  }
}

static double binomial_draw(Source* source, double count, double prob, int single) {
  if (count <= 0.0 || prob <= 0.0) return 0;
  if (prob >= 1.0) return count;
  if (isnan(prob) || isnan(count)) return NAN;
  const int flipped = prob > 0.5;
  const double chance = flipped ? rounded(1.0 - prob, single) : prob;
  const double drawn = rounded(count * chance, single) >= 10.0
                           ? by_rejection(source, count, chance, single)
                           : gaps_within(source, count, chance, single);
  return flipped ? rounded(count - drawn, single) : drawn;
}

// A draw that rounds to the end, which is no part of the range, is its start.
static double between(Source* source, double low, double high) {
  const double drawn = fma(uniform(source), high - low, low);
  return drawn == high ? low : drawn;
}

static float single(Source* source) {
  return (float)(word(source) & ((UINT32_C(1) << 24) - 1)) * (1.0f / (UINT32_C(1) << 24));
}

static double single_between(Source* source, double low, double high) {
  const float drawn = fmaf(single(source), (float)high - (float)low, (float)low);
  return drawn == (float)high ? (float)low : drawn;
}

static double scaled_normal(Source* source, double mean, double std) {
  return fma(normal(source), std, mean);
}

static double exponential(Source* source, double rate, double unused) {
  (void)unused;
  return -1.0 / rate * log1p(-uniform(source));
}

static double bernoulli(Source* source, double prob, double unused) {
  (void)unused;
  return uniform(source) < prob;
}

static double cauchy(Source* source, double median, double sigma) {
  return fma(tan(PI * (uniform(source) - 0.5)), sigma, median);
}

static double geometric(Source* source, double scale, double unused) {
  (void)unused;
  return ceil(log(uniform(source)) / scale);
}

static double log_normal(Source* source, double mean, double std) {
  return exp(scaled_normal(source, mean, std));
}

// By the numbers that `sequential.py` gives them; one behind these is of normal draws in blocks.
static double (*const DISTRIBUTIONS[])(Source*, double, double) = {
    between, single_between, scaled_normal, exponential, bernoulli, cauchy, geometric, log_normal};
enum { KINDS = sizeof DISTRIBUTIONS / sizeof *DISTRIBUTIONS };

// The limited API has buffers from 3.11 on, with the layout and functions that 3.10 has.
#if defined(Py_LIMITED_API) && Py_LIMITED_API + 0 < 0x030B0000
typedef struct {
  void* buf;
  PyObject* obj;
  Py_ssize_t len, itemsize;
  int readonly, ndim;
  char* format;
  Py_ssize_t *shape, *strides, *suboffsets;
  void* internal;
} Py_buffer;
enum { PyBUF_SIMPLE = 0, PyBUF_WRITABLE = 1 };
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject* object, Py_buffer* view, int flags);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer* view);
#endif

static int opened(Source* source, PyObject* capsule) {
  source->words = PyCapsule_GetPointer(capsule, "BitGenerator");
  source->spare = NAN;
  return source->words != NULL;
}

// The address of `n` elements behind `offset` others in what an object holds; NULL with an error.
// Whoever calls holds the object, which is no view that something could release meanwhile.
static void* elements(PyObject* object, int flags, Py_ssize_t offset, Py_ssize_t n, int width) {
  Py_buffer view;
  if (PyObject_GetBuffer(object, &view, flags)) return NULL;
  char* start = (char*)view.buf + offset * width;
  const int fits = offset >= 0 && n >= 0 && (offset + n) * width <= view.len;
  PyBuffer_Release(&view);
  if (fits) return start;
  PyErr_SetString(PyExc_ValueError, "memory of fewer elements");
  return NULL;
}

static void* doubles(PyObject* object, int flags, Py_ssize_t n) {
  return elements(object, flags, 0, n, sizeof(double));
}

// Eight pairs of draws, from eight lengths and then eight turns (G. Box and M. Muller, 1958).
static void double_block(double* u, double mean, double std) {
  for (int i = 0; i < 8; ++i) {
    const double radius = sqrt(-2.0 * log(1.0 - u[i])), angle = 2.0 * PI * u[i + 8];
    u[i] = fma(radius * cos(angle), std, mean);
    u[i + 8] = fma(radius * sin(angle), std, mean);
  }
}

INLINE float polynomial(const float* factors, int n, float x) {
  float sum = factors[0];
  for (int i = 1; i < n; ++i) sum = fmaf(sum, x, factors[i]);
  return sum;
}

// Cephes's logarithm of a normal number: of its mantissa by a polynomial, and its exponent's.
INLINE float logarithm(float x) {
  static const float FACTORS[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                  -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                  2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  int32_t bits, exponent;
  memcpy(&bits, &x, sizeof bits);
  exponent = (bits - 0x3F3504F3) >> 23;  // of a mantissa from the root of 1/2 on
  bits -= exponent * (1 << 23);
  memcpy(&x, &bits, sizeof x);
  x -= 1;
  const float square = x * x, y = polynomial(FACTORS, 9, x) * x;
  const float sum = fmaf(-0.5f, square, fmaf(y, square, (float)exponent * -2.12194440e-4f));
  return fmaf((float)exponent, 0.693359375f, x + sum);
}

// Cephes's sine and cosine of an angle that is not negative, by the octant that it lies in.
INLINE void turned(float x, float* sine, float* cosine) {
  static const float SINES[] = {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f};
  static const float COSINES[] = {2.443315711809948e-5f, -1.388731625493765e-3f,
                                  4.166664568298827e-2f};
  const int octant = ((int)(x * 1.27323954473516f) + 1) & ~1;
  const float turns = (float)octant;
  x = fmaf(turns, -0.78515625f, x);
  x = fmaf(turns, -2.4187564849853515625e-4f, x);
  x = fmaf(turns, -3.77489497744594108e-8f, x);
  const float z = x * x, odd = fmaf(polynomial(SINES, 3, z) * z, x, x);
  const float even = fmaf(polynomial(COSINES, 3, z) * z, z, -0.5f * z) + 1;
  const int swapped = octant & 2;
  *sine = (octant & 4 ? -1.0f : 1.0f) * (swapped ? even : odd);
  *cosine = ((octant + 2) & 4 ? -1.0f : 1.0f) * (swapped ? odd : even);
}

FUSED static void single_block(float* u, float mean, float std) {
  for (int i = 0; i < 8; ++i) {
    const float radius = sqrtf(-2.0f * logarithm(1.0f - u[i]));
    float sine, cosine;
    turned((float)(2.0 * PI) * u[i + 8], &sine, &cosine);
    u[i] = fmaf(radius * cosine, std, mean);
    u[i + 8] = fmaf(radius * sine, std, mean);
  }
}

// From 16 on all are drawn before blocks of 16 are made, and a last one that reaches back is of
// new draws, as torch does.
#define NORMAL_BLOCKS(NAME, TYPE, DRAW, BLOCK)                                     \
  static void NAME(Source* source, TYPE* out, Py_ssize_t n, TYPE mean, TYPE std) { \
    for (Py_ssize_t i = 0; i < n; ++i) out[i] = DRAW(source);                      \
    for (Py_ssize_t i = 0; i + 16 <= n; i += 16) BLOCK(out + i, mean, std);        \
    if (n % 16 == 0) return;                                                       \
    for (Py_ssize_t i = n - 16; i < n; ++i) out[i] = DRAW(source);                 \
    BLOCK(out + n - 16, mean, std);                                                \
  }
NORMAL_BLOCKS(double_blocks, double, uniform, double_block)
NORMAL_BLOCKS(single_blocks, float, single, single_block)

static PyObject* fill(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *capsule, *memory;
  Source source;
  Py_ssize_t offset, n;
  int kind, width;
  double a, b, spare;
  if (!PyArg_ParseTuple(args, "OOnniiddd", &capsule, &memory, &offset, &n, &width, &kind, &a, &b,
                        &spare))
    return NULL;
  if (!opened(&source, capsule)) return NULL;
  source.spare = spare;
  void* out = elements(memory, PyBUF_WRITABLE, offset, n, width);
  if (out == NULL) return NULL;
  if (kind == KINDS && width == sizeof(float)) {
    single_blocks(&source, out, n, (float)a, (float)b);
  } else if (kind == KINDS) {
    double_blocks(&source, out, n, a, b);
  } else if (width == sizeof(float)) {
    for (Py_ssize_t i = 0; i < n; ++i)
      ((float*)out)[i] = (float)DISTRIBUTIONS[kind](&source, a, b);
  } else {
    for (Py_ssize_t i = 0; i < n; ++i) ((double*)out)[i] = DISTRIBUTIONS[kind](&source, a, b);
  }
  return PyFloat_FromDouble(source.spare);
}

static PyObject* integers(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *capsule, *memory;
  Source source;
  Py_ssize_t n;
  long long low;
  unsigned long long span;
  int twice;
  if (!PyArg_ParseTuple(args, "OOnLKp", &capsule, &memory, &n, &low, &span, &twice)) return NULL;
  uint64_t* out = elements(memory, PyBUF_WRITABLE, 0, n, sizeof(uint64_t));
  if (out == NULL || !opened(&source, capsule)) return NULL;
  for (Py_ssize_t i = 0; i < n; ++i) {
    uint64_t raw = word(&source);
    if (twice) raw = raw << 32 | word(&source);
    out[i] = (span ? raw % span : raw) + (uint64_t)low;
  }
  Py_RETURN_NONE;
}

static PyObject* gamma_fill(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *capsule, *in, *out;
  Source source;
  Py_ssize_t n;
  int single;
  double spare;
  if (!PyArg_ParseTuple(args, "OOOnpd", &capsule, &in, &out, &n, &single, &spare)) return NULL;
  if (!opened(&source, capsule)) return NULL;
  source.spare = spare;
  const double* alpha = doubles(in, PyBUF_SIMPLE, n);
  double* drawn = alpha == NULL ? NULL : doubles(out, PyBUF_WRITABLE, n);
  if (drawn == NULL) return NULL;
  for (Py_ssize_t i = 0; i < n; ++i) drawn[i] = gamma_draw(&source, alpha[i], single);
  return PyFloat_FromDouble(source.spare);
}

static PyObject* poisson_fill(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *capsule, *in, *out;
  Source source;
  Py_ssize_t n;
  if (!PyArg_ParseTuple(args, "OOOn", &capsule, &in, &out, &n)) return NULL;
  if (!opened(&source, capsule)) return NULL;
  const double* rate = doubles(in, PyBUF_SIMPLE, n);
  double* drawn = rate == NULL ? NULL : doubles(out, PyBUF_WRITABLE, n);
  if (drawn == NULL) return NULL;
  for (Py_ssize_t i = 0; i < n; ++i) drawn[i] = poisson_draw(&source, rate[i]);
  Py_RETURN_NONE;
}

static PyObject* binomial_fill(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *capsule, *counts, *probs, *out;
  Source source;
  Py_ssize_t n;
  int single;
  if (!PyArg_ParseTuple(args, "OOOOnp", &capsule, &counts, &probs, &out, &n, &single)) return NULL;
  if (!opened(&source, capsule)) return NULL;
  const double* count = doubles(counts, PyBUF_SIMPLE, n);
  const double* prob = count == NULL ? NULL : doubles(probs, PyBUF_SIMPLE, n);
  double* drawn = prob == NULL ? NULL : doubles(out, PyBUF_WRITABLE, n);
  if (drawn == NULL) return NULL;
  for (Py_ssize_t i = 0; i < n; ++i)
    drawn[i] = binomial_draw(&source, count[i], prob[i], single);
  Py_RETURN_NONE;
}

static PyObject* permutation_fill(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *capsule, *out;
  Source source;
  Py_ssize_t n;
  if (!PyArg_ParseTuple(args, "OOn", &capsule, &out, &n)) return NULL;
  if (!opened(&source, capsule)) return NULL;
  int64_t* order = elements(out, PyBUF_WRITABLE, 0, n, sizeof(int64_t));
  if (order == NULL) return NULL;
  for (Py_ssize_t i = 0; i < n; ++i) order[i] = i;
  for (Py_ssize_t i = 0; i + 1 < n; ++i) {
    const Py_ssize_t other = i + (Py_ssize_t)(word(&source) % (uint64_t)(n - i));
    const int64_t kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"fill", fill, METH_VARARGS, "fill(words, out, offset, n, width, kind, a, b, spare): new spare."},
    {"integers", integers, METH_VARARGS, "integers(words, out, n, low, span, twice)"},
    {"gamma", gamma_fill, METH_VARARGS, "gamma(words, in, out, n, single, spare): the new spare."},
    {"poisson", poisson_fill, METH_VARARGS, "poisson(words, in, out, n)"},
    {"binomial", binomial_fill, METH_VARARGS, "binomial(words, counts, probs, out, n, single)"},
    {"permutation", permutation_fill, METH_VARARGS, "permutation(words, out, n)"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                        .m_name = "mindtorch._random._sequential",
                                        .m_doc = "Draws of MT19937 that are made one by one.",
                                        .m_size = -1,
                                        .m_methods = functions};

PyMODINIT_FUNC PyInit__sequential(void) { return PyModule_Create(&definition); }
