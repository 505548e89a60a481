// Baseline JPEG: see jpeg.h. Tables are those of ITU-T T.81, annexes K.1 and K.3.
#include "loops/jpeg.h"

#include <algorithm>
#include <cmath>

namespace aclsim {
namespace {

constexpr uint8_t kZigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
constexpr uint8_t kQuant[2][64] = {
    {16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,
     14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,
     18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,
     49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99},
    {17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
     99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99}};
// Codes per length, then the symbols in order. DC symbols are 0 to 11.
constexpr uint8_t kDcLengths[2][16] = {{0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0},
                                       {0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0}};

struct Huffman {
  uint8_t lengths[16] = {};
  std::vector<uint8_t> symbols;
  uint16_t code[256] = {};
  uint8_t bits[256] = {};

  void finish() {
    uint16_t next = 0;
    size_t at = 0;
    for (int n = 0; n < 16; ++n, next = static_cast<uint16_t>(next << 1)) {
      for (int k = 0; k < lengths[n] && at < symbols.size(); ++k, ++at, ++next) {
        code[symbols[at]] = next;
        bits[symbols[at]] = static_cast<uint8_t>(n + 1);
      }
    }
  }
};
Huffman dc_table(int which) {
  Huffman h;
  std::copy_n(kDcLengths[which], 16, h.lengths);
  for (uint8_t s = 0; s < 12; ++s) h.symbols.push_back(s);
  h.finish();
  return h;
}
// One AC table of the encoder's own for all components: every run and size in eight or nine bits. The
// end of a block and long runs come first.
Huffman ac_table() {
  Huffman h;
  h.symbols = {0x00, 0xF0};
  for (int size = 1; size <= 10; ++size) {
    for (int run = 0; run < 16; ++run) h.symbols.push_back(static_cast<uint8_t>(run << 4 | size));
  }
  h.lengths[1] = 1;  // 00: end of block
  h.lengths[7] = static_cast<uint8_t>(h.symbols.size() - 1);
  h.finish();
  return h;
}

// c[u] = sum over x of cosine terms; the transform is its own inverse, transposed.
const double* cosines() {
  static const auto table = [] {
    std::vector<double> t(64);
    for (int u = 0; u < 8; ++u) {
      for (int x = 0; x < 8; ++x) {
        t[u * 8 + x] = (u ? 0.5 : std::sqrt(0.125)) * std::cos((2 * x + 1) * u * M_PI / 16);
      }
    }
    return t;
  }();
  return table.data();
}
void transform(const double* in, double* out, bool inverse) {
  const double* t = cosines();
  double rows[64] = {};
  for (int i = 0; i < 64; ++i) {
    for (int k = 0; k < 8; ++k) {
      rows[i] += in[i / 8 * 8 + k] * (inverse ? t[k * 8 + i % 8] : t[i % 8 * 8 + k]);
    }
  }
  for (int i = 0; i < 64; ++i) {
    out[i] = 0;
    for (int k = 0; k < 8; ++k) {
      out[i] += rows[k * 8 + i % 8] * (inverse ? t[k * 8 + i / 8] : t[i / 8 * 8 + k]);
    }
  }
}

class BitWriter {
 public:
  explicit BitWriter(std::vector<uint8_t>& to) : to_(to) {}
  void put(uint32_t value, int count) {
    for (int i = count - 1; i >= 0; --i) {
      byte_ = static_cast<uint8_t>(byte_ << 1 | (value >> i & 1));
      if (++used_ == 8) flush();
    }
  }
  void finish() {
    while (used_) put(1, 1);
  }

 private:
  void flush() {
    to_.push_back(byte_);
    if (byte_ == 0xFF) to_.push_back(0);
    used_ = 0;
    byte_ = 0;
  }
  std::vector<uint8_t>& to_;
  uint8_t byte_ = 0;
  int used_ = 0;
};
int size_of(int value) {
  int n = 0;
  for (int v = std::abs(value); v; v >>= 1) ++n;
  return n;
}
void put_value(BitWriter& to, int value, int size) {
  to.put(static_cast<uint32_t>(value >= 0 ? value : value + (1 << size) - 1), size);
}
void put_block(BitWriter& to, const double* pixels, const int* quant, const Huffman& dc,
               const Huffman& ac, int& before) {
  double out[64];
  transform(pixels, out, false);
  int steps[64];
  for (int i = 0; i < 64; ++i) {
    const double step = std::nearbyint(out[kZigzag[i]] / quant[kZigzag[i]]);
    steps[i] = static_cast<int>(std::min(std::max(step, i ? -1023.0 : -2047.0), i ? 1023.0 : 2047.0));
  }
  const int change = steps[0] - before, size = size_of(change);
  before = steps[0];
  to.put(dc.code[size], dc.bits[size]);
  put_value(to, change, size);
  int run = 0;
  for (int i = 1; i < 64; ++i) {
    if (steps[i] == 0) {
      ++run;
      continue;
    }
    for (; run > 15; run -= 16) to.put(ac.code[0xF0], ac.bits[0xF0]);
    const int n = size_of(steps[i]), symbol = run << 4 | n;
    to.put(ac.code[symbol], ac.bits[symbol]);
    put_value(to, steps[i], n);
    run = 0;
  }
  if (run) to.put(ac.code[0], ac.bits[0]);
}
void put_segment(std::vector<uint8_t>& to, uint8_t marker, const std::vector<uint8_t>& body) {
  const size_t n = body.size() + 2;
  to.insert(to.end(), {0xFF, marker, static_cast<uint8_t>(n >> 8), static_cast<uint8_t>(n)});
  to.insert(to.end(), body.begin(), body.end());
}
void put_table(std::vector<uint8_t>& to, uint8_t name, const Huffman& h) {
  std::vector<uint8_t> body = {name};
  body.insert(body.end(), h.lengths, h.lengths + 16);
  body.insert(body.end(), h.symbols.begin(), h.symbols.end());
  put_segment(to, 0xC4, body);
}
double luma(const double* p, int64_t plane, int which) {
  constexpr double kRows[3][3] = {
      {0.299, 0.587, 0.114}, {-0.168736, -0.331264, 0.5}, {0.5, -0.418688, -0.081312}};
  const double* r = kRows[which];
  return r[0] * p[0] + r[1] * p[plane] + r[2] * p[2 * plane] + (which ? 128 : 0);
}

}  // namespace

std::vector<uint8_t> encode_jpeg(const Pixels& image, int quality) {
  const int scale = quality < 50 ? 5000 / quality : 200 - 2 * quality;
  const int parts = image.channels == 1 ? 1 : 3;
  int quant[2][64];
  std::vector<uint8_t> to = {0xFF, 0xD8};
  for (int t = 0; t < (parts == 1 ? 1 : 2); ++t) {
    std::vector<uint8_t> body = {static_cast<uint8_t>(t)};
    for (int i = 0; i < 64; ++i) {
      quant[t][i] = std::min(std::max((kQuant[t][i] * scale + 50) / 100, 1), 255);
    }
    for (int i = 0; i < 64; ++i) body.push_back(static_cast<uint8_t>(quant[t][kZigzag[i]]));
    put_segment(to, 0xDB, body);
  }
  const auto high = [](int64_t n) { return static_cast<uint8_t>(n >> 8); };
  const auto low = [](int64_t n) { return static_cast<uint8_t>(n); };
  std::vector<uint8_t> frame = {8, high(image.height), low(image.height), high(image.width),
                                low(image.width), static_cast<uint8_t>(parts)};
  std::vector<uint8_t> scan = {static_cast<uint8_t>(parts)};
  for (int p = 0; p < parts; ++p) {
    frame.insert(frame.end(), {static_cast<uint8_t>(p + 1), 0x11, static_cast<uint8_t>(p > 0)});
    scan.insert(scan.end(), {static_cast<uint8_t>(p + 1), static_cast<uint8_t>(p > 0 ? 0x10 : 0)});
  }
  put_segment(to, 0xC0, frame);
  const Huffman dc[2] = {dc_table(0), dc_table(1)}, ac = ac_table();
  put_table(to, 0x00, dc[0]);
  if (parts > 1) put_table(to, 0x01, dc[1]);
  put_table(to, 0x10, ac);
  scan.insert(scan.end(), {0, 63, 0});
  put_segment(to, 0xDA, scan);
  BitWriter bits(to);
  int before[3] = {};
  for (int64_t y = 0; y < image.height; y += 8) {
    for (int64_t x = 0; x < image.width; x += 8) {
      for (int p = 0; p < parts; ++p) {
        double block[64];
        for (int64_t i = 0; i < 64; ++i) {  // the last row and column go on past the edge
          const int64_t h = std::min(y + i / 8, image.height - 1);
          const int64_t w = std::min(x + i % 8, image.width - 1);
          const double* at = image.x.data() + h * image.width + w;
          block[i] = (parts == 1 ? *at : luma(at, image.height * image.width, p)) - 128;
        }
        put_block(bits, block, quant[p > 0], dc[p > 0], ac, before[p]);
      }
    }
  }
  bits.finish();
  to.insert(to.end(), {0xFF, 0xD9});
  return to;
}

namespace {

struct Component {
  int id = 0, across = 1, down = 1, quant = 0, dc = 0, ac = 0, before = 0;
  int64_t width = 0, height = 0;  // in pixels, whole blocks
  std::vector<double> x;
};

class Reader {
 public:
  Reader(const uint8_t* data, int64_t size, bool partial)
      : data_(data), size_(size), partial_(partial) {}
  bool read(Pixels& image) {
    if (size_ < 4 || data_[0] != 0xFF || data_[1] != 0xD8) return fail("it does not begin as JPEG does");
    at_ = 2;
    for (;;) {
      while (at_ + 1 < size_ && data_[at_] == 0xFF && data_[at_ + 1] == 0xFF) ++at_;
      if (at_ + 4 > size_ || data_[at_] != 0xFF) return fail("a segment is missing");
      const uint8_t marker = data_[at_ + 1];
      const int64_t length = data_[at_ + 2] << 8 | data_[at_ + 3];
      if (length < 2 || at_ + 2 + length > size_) return fail("a segment is cut short");
      body_ = data_ + at_ + 4;
      left_ = length - 2;
      at_ += 2 + length;
      if (!segment(marker)) return false;
      if (marker == 0xDA) break;
    }
    return pixels(image);
  }
  std::string why;

 private:
  bool fail(const char* reason) {
    why = reason;
    return false;
  }
  bool segment(uint8_t marker) {
    if (marker == 0xDB) return quant_tables();
    if (marker == 0xC4) return huffman_tables();
    if (marker == 0xC0 || marker == 0xC1) return frame();
    if (marker == 0xDD && left_ >= 2) restart_ = body_[0] << 8 | body_[1];
    if (marker == 0xDA) return scan();
    const bool other = marker >= 0xC2 && marker <= 0xCF && marker != 0xC8 && marker != 0xCC;
    return other ? fail("only baseline files are decoded here, this one is progressive or other") : true;
  }
  bool quant_tables() {
    while (left_ > 0) {
      const int name = body_[0] & 15, wide = body_[0] >> 4;
      const int64_t bytes = wide ? 128 : 64;
      if (name > 3 || left_ < bytes + 1) return fail("a quantisation table is wrong");
      for (int i = 0; i < 64; ++i) {
        const uint8_t* p = body_ + 1 + i * (wide ? 2 : 1);
        quant_[name][kZigzag[i]] = wide ? p[0] << 8 | p[1] : p[0];
      }
      body_ += bytes + 1;
      left_ -= bytes + 1;
    }
    return true;
  }
  bool huffman_tables() {
    while (left_ > 16) {
      const int name = body_[0] & 15, kind = body_[0] >> 4;
      if (name > 3 || kind > 1) return fail("a Huffman table is wrong");
      Huffman& h = huffman_[kind][name];
      int64_t count = 0;
      for (int i = 0; i < 16; ++i) count += h.lengths[i] = body_[1 + i];
      if (count > 256 || left_ < 17 + count) return fail("a Huffman table is wrong");
      h.symbols.assign(body_ + 17, body_ + 17 + count);
      body_ += 17 + count;
      left_ -= 17 + count;
    }
    return true;
  }
  bool frame() {
    if (left_ < 6 || body_[0] != 8) return fail("its frame is not of 8 bits");
    height_ = body_[1] << 8 | body_[2];
    width_ = body_[3] << 8 | body_[4];
    const int parts = body_[5];
    if ((parts != 1 && parts != 3) || left_ < 6 + 3 * parts || !height_ || !width_) {
      return fail("its frame has sizes or components that are not read here");
    }
    parts_.assign(static_cast<size_t>(parts), {});
    for (int p = 0; p < parts; ++p) {
      const uint8_t* b = body_ + 6 + 3 * p;
      Component& c = parts_[p];
      c.id = b[0];
      c.across = b[1] >> 4;
      c.down = b[1] & 15;
      c.quant = b[2];
      if (c.across < 1 || c.across > 4 || c.down < 1 || c.down > 4 || c.quant > 3) {
        return fail("a component is sampled in a way that JPEG lacks");
      }
      across_ = std::max(across_, c.across);
      down_ = std::max(down_, c.down);
    }
    return true;
  }
  bool scan() {
    if (parts_.empty() || left_ < 1 || body_[0] != parts_.size() || left_ < 1 + 2 * body_[0]) {
      return fail("its scan does not hold all components");
    }
    for (int k = 0; k < body_[0]; ++k) {
      for (Component& c : parts_) {
        if (c.id != body_[1 + 2 * k]) continue;
        c.dc = body_[2 + 2 * k] >> 4 & 3;
        c.ac = body_[2 + 2 * k] & 3;
      }
    }
    return true;
  }

  int bit() {
    if (have_ == 0) {
      if (at_ >= size_ || (data_[at_] == 0xFF && (at_ + 1 >= size_ || data_[at_ + 1] != 0))) {
        ended_ = true;  // a marker, or nothing more
        return 0;
      }
      byte_ = data_[at_];
      at_ += byte_ == 0xFF ? 2 : 1;
      have_ = 8;
    }
    return byte_ >> --have_ & 1;
  }
  int bits(int count) {
    int value = 0;
    for (int i = 0; i < count; ++i) value = value << 1 | bit();
    return value;
  }
  int value(int size) {
    const int v = bits(size);
    return size && v < 1 << (size - 1) ? v - (1 << size) + 1 : v;
  }
  int symbol(const Huffman& h) {
    int code = 0, first = 0, index = 0;
    for (int n = 0; n < 16; ++n) {
      code |= bit();
      const int count = h.lengths[n];
      if (code - first < count) {
        return index + code - first < static_cast<int>(h.symbols.size()) ? h.symbols[index + code - first] : 0;
      }
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    ended_ = true;
    return 0;
  }
  void block(Component& c, int64_t top, int64_t left) {
    double steps[64] = {}, out[64];
    c.before += value(std::min(symbol(huffman_[0][c.dc]), 16));
    steps[0] = static_cast<double>(c.before) * quant_[c.quant][0];
    for (int i = 1; i < 64 && !ended_; ++i) {
      const int s = symbol(huffman_[1][c.ac]), size = s & 15;
      i += s >> 4;
      if (size == 0 && s != 0xF0) break;
      if (i < 64) steps[kZigzag[i]] = static_cast<double>(value(size)) * quant_[c.quant][kZigzag[i]];
    }
    transform(steps, out, true);
    for (int i = 0; i < 64; ++i) c.x[(top + i / 8) * c.width + left + i % 8] = out[i] + 128;
  }
  void restart() {
    have_ = 0;
    while (at_ + 1 < size_ && !(data_[at_] == 0xFF && data_[at_ + 1] >= 0xD0 && data_[at_ + 1] <= 0xD7)) {
      ++at_;
    }
    at_ = std::min(at_ + 2, size_);
    for (Component& c : parts_) c.before = 0;
  }
  bool pixels(Pixels& image) {
    const int64_t rows = (height_ + 8 * down_ - 1) / (8 * down_);
    const int64_t cols = (width_ + 8 * across_ - 1) / (8 * across_);
    for (Component& c : parts_) {
      c.width = cols * c.across * 8;
      c.height = rows * c.down * 8;
      c.x.assign(static_cast<size_t>(c.width * c.height), 128);
    }
    for (int64_t m = 0; m < rows * cols && !ended_; ++m) {
      if (restart_ && m && m % restart_ == 0) restart();
      for (Component& c : parts_) {
        for (int k = 0; k < c.across * c.down && !ended_; ++k) {
          block(c, (m / cols * c.down + k / c.across) * 8, (m % cols * c.across + k % c.across) * 8);
        }
      }
    }
    if (ended_ && !partial_) return fail("its data ends early");
    image = {height_, width_, static_cast<int64_t>(parts_.size()), {}};
    image.x.resize(static_cast<size_t>(image.channels * height_ * width_));
    colours(image);
    return true;
  }
  void colours(Pixels& image) {
    const int64_t plane = height_ * width_;
    for (int64_t i = 0; i < plane; ++i) {
      double v[3] = {};
      for (size_t p = 0; p < parts_.size(); ++p) {
        const Component& c = parts_[p];
        v[p] = c.x[i / width_ * c.down / down_ * c.width + i % width_ * c.across / across_];
      }
      double* to = image.x.data() + i;
      const auto set = [&](int64_t k, double x) { to[k * plane] = std::min(std::max(x, 0.0), 255.0); };
      if (parts_.size() == 1) {
        set(0, v[0]);
        continue;
      }
      set(0, v[0] + 1.402 * (v[2] - 128));
      set(1, v[0] - 0.344136 * (v[1] - 128) - 0.714136 * (v[2] - 128));
      set(2, v[0] + 1.772 * (v[1] - 128));
    }
  }

  const uint8_t* data_;
  const uint8_t* body_ = nullptr;
  int64_t size_, at_ = 0, left_ = 0, height_ = 0, width_ = 0;
  bool partial_, ended_ = false;
  int across_ = 1, down_ = 1, restart_ = 0, have_ = 0, quant_[4][64] = {};
  uint8_t byte_ = 0;
  Huffman huffman_[2][4];
  std::vector<Component> parts_;
};

}  // namespace

bool decode_jpeg(const uint8_t* data, int64_t size, bool partial, Pixels& image, std::string& why) {
  Reader reader(data, size, partial);
  const bool read = reader.read(image);
  why = reader.why;
  return read;
}

}  // namespace aclsim
