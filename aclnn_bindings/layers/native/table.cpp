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
  if (head->magic != kTableMagic) return false;
  rows_ = reinterpret_cast<const Row*>(head + 1);
  parameters_ = reinterpret_cast<const Parameter*>(rows_ + head->functions);
  strings_ = reinterpret_cast<const char*>(parameters_ + head->parameters);
  count_ = head->functions;
  return true;
}

}  // namespace layers
