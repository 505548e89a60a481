#include "table.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace layers {

bool Table::open(const char* path) {
  struct Head {
    uint64_t magic;
    uint32_t functions, parameters;
  };
  int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct stat facts;
  void* data = fstat(file, &facts) == 0 && facts.st_size >= static_cast<off_t>(sizeof(Head))
                   ? mmap(nullptr, static_cast<size_t>(facts.st_size), PROT_READ, MAP_PRIVATE,
                          file, 0)
                   : MAP_FAILED;
  close(file);
  if (data == MAP_FAILED) return false;
  const auto* head = static_cast<const Head*>(data);
  const auto size = static_cast<uint64_t>(facts.st_size);
  const uint64_t strings = sizeof(Head) + uint64_t{head->functions} * sizeof(Row) +
                           uint64_t{head->parameters} * sizeof(Parameter);
  if (head->magic != kTableMagic || strings > size) return false;
  rows_ = reinterpret_cast<const Row*>(head + 1);
  parameters_ = reinterpret_cast<const Parameter*>(rows_ + head->functions);
  strings_ = reinterpret_cast<const char*>(parameters_ + head->parameters);
  count_ = head->functions;
  return is_sound(head->parameters, size - strings);
}

// Whether what rows refer to lies in the file.
bool Table::is_sound(uint64_t parameters, uint64_t text) const {
  if (count_ && (!text || strings_[text - 1])) return false;
  for (uint32_t i = 0; i < count_; ++i)
    if (rows_[i].name >= text || uint64_t{rows_[i].parameters} + rows_[i].count > parameters ||
        (rows_[i].partner >= count_ && rows_[i].partner != kNone))
      return false;
  return true;
}

}  // namespace layers
