// Baseline JPEG (ITU-T T.81): pixels to bytes and back. Progressive and arithmetic files are refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace aclsim {

struct Pixels {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<double> x;  // [C, H, W], 0 to 255; RGB or grey
};
// Bytes of a file at a quality of 1 to 100, with the tables of annex K, scaled as libjpeg does.
std::vector<uint8_t> encode_jpeg(const Pixels& image, int quality);
// False with the reason where bytes are no baseline file, or end early and `partial` is not set.
bool decode_jpeg(const uint8_t* data, int64_t size, bool partial, Pixels& image, std::string& why);

}  // namespace aclsim
