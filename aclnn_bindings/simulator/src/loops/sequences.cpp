// Attention row by row: see sequences.h.
#include "loops/sequences.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "loops/parallel.h"

namespace aclsim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double dot(const float* a, const float* b, int64_t n) {
  constexpr int kLanes = 8;  // independent sums, which vectorise
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] += static_cast<double>(a[i + l]) * b[i + l];
  }
  for (int l = 0; i < n; ++i, ++l) lanes[l] += static_cast<double>(a[i]) * b[i];
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

// The packed layouts: sequences follow each other along one dim of `total` rows.
bool place_packed(const int64_t* d, bool heads_first, int64_t heads, const Ints& ends, Heads& h,
                  Ints& rows) {
  const int64_t total = d[heads_first ? 1 : 0];
  h.heads = d[heads_first ? 0 : 1], h.depth = d[2];
  h.row = heads_first ? h.depth : h.heads * h.depth;
  h.head = heads_first ? total * h.depth : h.depth;
  int64_t last = 0;
  for (int64_t end : ends) {
    h.start.push_back(last * h.row);
    rows.push_back(std::max<int64_t>(0, end - last));
    last = std::max(last, end);
  }
  return last <= total && (heads == 0 || heads == h.heads);
}
bool place_flat(const int64_t* d, bool batch_first, int64_t heads, int64_t depth, Heads& h,
                Ints& rows) {
  if (heads == 0) heads = depth > 0 ? d[2] / depth : 0;
  if (heads <= 0 || d[2] % heads != 0) return false;
  const int64_t batch = d[batch_first ? 0 : 1], length = d[batch_first ? 1 : 0];
  h.heads = heads, h.depth = d[2] / heads, h.head = h.depth;
  h.row = batch_first ? d[2] : batch * d[2];
  for (int64_t b = 0; b < batch; ++b) h.start.push_back(b * (batch_first ? length * d[2] : d[2]));
  rows.assign(static_cast<size_t>(batch), length);
  return true;
}

}  // namespace

bool place_heads(const int64_t* d, int rank, const char* layout, int64_t heads, int64_t depth,
                 const Ints& ends, Heads& h, Ints& rows) {
  h.start.clear(), rows.clear();
  const auto is = [&](const char* name) { return std::strcmp(layout, name) == 0; };
  if (is("TND") || is("NTD")) return rank == 3 && place_packed(d, is("NTD"), heads, ends, h, rows);
  if (is("BSH") || is("SBH")) return rank == 3 && place_flat(d, is("BSH"), heads, depth, h, rows);
  if (rank != 4) return false;
  int64_t batch, length;
  h.depth = d[3];
  if (is("BNSD")) {
    batch = d[0], h.heads = d[1], length = d[2], h.row = d[3], h.head = length * d[3];
  } else if (is("BSND")) {
    batch = d[0], length = d[1], h.heads = d[2], h.row = h.heads * d[3], h.head = d[3];
  } else if (is("NBSD")) {
    h.heads = d[0], batch = d[1], length = d[2], h.row = d[3], h.head = batch * length * d[3];
  } else {
    return false;
  }
  const int64_t step = length * d[3] * (is("NBSD") ? 1 : h.heads);
  for (int64_t b = 0; b < batch; ++b) h.start.push_back(b * step);
  rows.assign(static_cast<size_t>(batch), length);
  return heads == 0 || heads == h.heads;
}

bool Sequences::hidden(int64_t b, int64_t i, int64_t j) const {
  const int64_t corner = i + keys[b] - queries[b];
  switch (sparse) {
    case 0: return !mask.empty() && queries[b] > 1 && (j < i - before || j > i + after);
    case 2: return j > i;
    case 3: return j > corner;
    case 4: return j < corner - before || j > corner + after;
    case 5:
    case 6: return j > corner && j >= prefix[b];
    default: return false;
  }
}
bool Sequences::dropped(int64_t b, int64_t n, int64_t i, int64_t j) const {
  if (kept.empty()) return false;
  const int64_t bit = kept_start[b] + (n * queries[b] + i) * keys[b] + j;
  return !(kept[bit / 8] >> bit % 8 & 1);
}
void Sequences::score(int64_t b, int64_t n, int64_t i, Doubles& out) const {
  const int64_t of = n / (heads / kv_heads), fq = first_query.empty() ? 0 : first_query[b],
                fk = first_key.empty() ? 0 : first_key[b];
  const bool masks = !mask.empty() && (sparse < 2 || sparse > 6);
  out.assign(static_cast<size_t>(keys[b]), -kInfinity);
  for (int64_t j = 0; j < keys[b]; ++j) {
    if (hidden(b, i, j) || (masks && mask.data[mask.index(b, n, fq + i, fk + j)] != 0)) continue;
    if (closed && closed(b, n, i, j)) continue;
    double s = dot(q.at(b, n, i), k.at(b, of, j), q.depth);
    if (!q_rope.empty()) s += dot(q_rope.at(b, n, i), k_rope.at(b, of, j), q_rope.depth);
    s *= dequant1;
    double shifted = shift.empty() ? 0 : shift.data[shift.index(b, n, fq + i, fk + j)];
    if (!slopes.empty()) {
      const int64_t from = i + (query_start.empty() ? 0 : query_start[0]),
                    to = j + (key_start.empty() ? 0 : key_start[0]);
      const auto far = static_cast<double>(std::abs(from - to));
      shifted -= slopes[(b * heads + n) % slopes.size()] * (slope_root ? std::sqrt(far) : far);
    }
    out[j] = shift_first ? (s + shifted) * scale : s * scale + shifted;
  }
}

namespace {

// One query: its probabilities before division by the returned sum, and their maximum.
double soften(const Sequences& s, int64_t n, Doubles& p, double& top) {
  top = s.sink.empty() ? -kInfinity : s.sink[n];
  for (double x : p) top = std::max(top, x);
  double sum = s.sink.empty() || top == -kInfinity ? 0 : std::exp(s.sink[n] - top);
  for (double& x : p) sum += x = x == -kInfinity ? 0 : std::exp(x - top);
  if (std::isnan(sum)) top = sum;
  return sum;
}
void attend_row(const Sequences& s, int64_t b, int64_t n, int64_t i, Doubles& p, Heads& out,
                Statistics& stats) {
  s.score(b, n, i, p);
  double top;
  const double sum = soften(s, n, p, top);
  const bool any = sum != 0;  // NaN counts
  float* row = out.at(b, n, i);
  Doubles total(static_cast<size_t>(s.v.depth));
  for (int64_t j = 0; j < s.keys[b] && any; ++j) {
    if (p[j] == 0 || s.dropped(b, n, i, j)) continue;
    const double w = s.quant1 > 0 ? std::nearbyint(p[j] * s.quant1) : p[j] / s.keep;
    const float* value = s.v.at(b, n / (s.heads / s.kv_heads), j);
    for (int64_t d = 0; d < s.v.depth; ++d) total[d] += w * value[d];
  }
  for (int64_t d = 0; d < s.v.depth; ++d) {
    row[d] = any ? static_cast<float>(total[d] * s.dequant2 / sum) : 0;
  }
  if (stats.place.empty()) return;
  const int64_t at = stats.place.at(b, n, i) - stats.place.data.data();
  constexpr float kMost = std::numeric_limits<float>::max();
  for (int64_t d = 0; d < stats.place.depth; ++d) {
    stats.top[at + d] = any ? static_cast<float>(top) : -kMost;
    stats.sum[at + d] = any ? static_cast<float>(sum) : kMost;
  }
}

}  // namespace

void attend(const Sequences& s, Heads& out, Statistics& statistics) {
  const auto batch = static_cast<int64_t>(s.queries.size());
  parallel_for(batch * s.heads, 1, [&](int64_t begin, int64_t end) {
    Doubles p;
    for (int64_t at = begin; at < end; ++at) {
      const int64_t b = at / s.heads, n = at % s.heads;
      for (int64_t i = 0; i < s.queries[b]; ++i) attend_row(s, b, n, i, p, out, statistics);
    }
  });
}

namespace {

// dx += a y.
void add_scaled(float* dx, double a, const float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dx[i] += static_cast<float>(a * y[i]);
}
struct Query {
  int64_t b, n, i, of;
};
void back_scores(const Sequences& s, const Query& r, int64_t j, double ds, SequenceGradients& g) {
  const double up = ds * s.scale;
  add_scaled(g.q.at(r.b, r.n, r.i), up, s.k.at(r.b, r.of, j), s.q.depth);
  add_scaled(g.k.at(r.b, r.of, j), up, s.q.at(r.b, r.n, r.i), s.q.depth);
  if (!s.q_rope.empty()) {
    add_scaled(g.q_rope.at(r.b, r.n, r.i), up, s.k_rope.at(r.b, r.of, j), s.q_rope.depth);
    add_scaled(g.k_rope.at(r.b, r.of, j), up, s.q_rope.at(r.b, r.n, r.i), s.q_rope.depth);
  }
  if (!g.shift.empty()) {
    g.shift[s.shift.index(r.b, r.n, r.i, j)] += static_cast<float>(s.shift_first ? up : ds);
  }
}
void back_row(const Sequences& s, const Query& r, const Heads& dout, const Statistics& stats,
              Doubles& p, SequenceGradients& g) {
  s.score(r.b, r.n, r.i, p);
  const int64_t at = stats.place.at(r.b, r.n, r.i) - stats.place.data.data();
  const double top = stats.top[at], sum = stats.sum[at];
  const float* up = dout.at(r.b, r.n, r.i);
  Doubles dp(p.size());
  double delta = 0;
  for (size_t j = 0; j < p.size(); ++j) {
    p[j] = p[j] == -kInfinity ? 0 : std::exp(p[j] - top) / sum;
    if (p[j] == 0 || s.dropped(r.b, r.n, r.i, j)) continue;
    dp[j] = dot(up, s.v.at(r.b, r.of, j), s.v.depth) / s.keep;
    delta += dp[j] * p[j];
    add_scaled(g.v.at(r.b, r.of, j), p[j] / s.keep, up, s.v.depth);
  }
  for (size_t j = 0; j < p.size(); ++j) {
    if (p[j] != 0) back_scores(s, r, static_cast<int64_t>(j), p[j] * (dp[j] - delta), g);
  }
  if (!g.sink.empty()) g.sink[r.n] -= static_cast<float>(std::exp(s.sink[r.n] - top) / sum * delta);
}

}  // namespace

void attend_back(const Sequences& s, const Heads& dout, const Statistics& statistics,
                 SequenceGradients& g) {
  Doubles p;
  for (size_t b = 0; b < s.queries.size(); ++b) {
    for (int64_t n = 0; n < s.heads; ++n) {
      for (int64_t i = 0; i < s.queries[b]; ++i) {
        const Query r = {static_cast<int64_t>(b), n, i, n / (s.heads / s.kv_heads)};
        back_row(s, r, dout, statistics, p, g);
      }
    }
  }
}

}  // namespace aclsim
