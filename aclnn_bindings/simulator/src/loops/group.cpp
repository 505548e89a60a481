// Exchanges of an operator's kernel with other ranks: see group.h.
#include "loops/group.h"

#include <dlfcn.h>

#include <cstring>

namespace aclsim {
namespace {

// The group's library is there already: the client made the communicator with it.
template <class F>
F* in_hccl(const char* name) {
  static void* const library = dlopen("libhccl.so", RTLD_LAZY | RTLD_NOLOAD);
  return library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
}
using FindGroup = bool(const char*, int32_t, uint32_t*, uint32_t*);
using RunExchange = aclError(const char*, int32_t, uint32_t, void*, uint32_t, uint64_t, void*,
                             uint32_t, uint64_t);

// Sizes travel as floats, exact up to here.
constexpr size_t kCountable = 1 << 24;

}  // namespace

aclnnStatus find_group(const Call& c, int group, Group& g) {
  g.name = c.text(group);
  auto* find = in_hccl<FindGroup>("aclsim_group");
  const bool here = aclrtGetDevice(&g.device) == ACL_SUCCESS;
  if (g.name && here && find && find(g.name, g.device, &g.rank, &g.ranks)) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID,
                "%s \"%s\" names no communicator of this device; HcclGetCommName tells a "
                "communicator's name.",
                c.name(group), g.name ? g.name : "");
}
aclnnStatus find_group(Call& c, int group, int reduce) {
  ACL_RETURN_IF_FAILED(find_group(c, group, c.make<Group>()));
  if (reduce != kNone && (!c.text(reduce) || std::strcmp(c.text(reduce), "sum") != 0)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s \"%s\" should be sum.", c.name(reduce),
                  c.text(reduce) ? c.text(reduce) : "");
  }
  return ACLNN_SUCCESS;
}

aclError exchange(const Call& c, const Group& g, Kind kind, Floats& give, uint32_t gives, Floats& get,
                  uint32_t gets) {
  auto* run = in_hccl<RunExchange>("aclsim_exchange");
  if (!run) return c.trap(507018, "The group's library is gone.");
  const aclError code =
      run(g.name, g.device, kind, give.data(), gives, give.size() / gives * sizeof(float),
          get.data(), gets, get.size() / gets * sizeof(float));
  return code == ACL_SUCCESS ? code : c.trap(code, "the collective of group %s failed", g.name);
}

aclError gather(const Call& c, const Group& g, const Floats& give, std::vector<Floats>& get) {
  Floats size(1, static_cast<float>(give.size())), sizes(g.ranks);
  aclError code = exchange(c, g, kAllGather, size, 1, sizes, g.ranks);
  if (code != ACL_SUCCESS) return code;
  const auto most = static_cast<size_t>(*std::max_element(sizes.begin(), sizes.end()));
  if (most > kCountable) return c.trap(507018, "more is exchanged than the simulator counts exactly");
  get.assign(g.ranks, {});
  if (most == 0) return ACL_SUCCESS;
  Floats mine = give, all(most * g.ranks);
  mine.resize(most);
  code = exchange(c, g, kAllGather, mine, 1, all, g.ranks);
  for (uint32_t r = 0; r < g.ranks; ++r) {
    const auto from = all.begin() + static_cast<int64_t>(r * most);
    get[r].assign(from, from + static_cast<int64_t>(sizes[r]));
  }
  return code;
}

aclError scatter(const Call& c, const Group& g, const std::vector<Floats>& give,
                 std::vector<Floats>& get) {
  size_t largest = 0;
  for (const Floats& part : give) largest = std::max(largest, part.size());
  Floats size(1, static_cast<float>(largest)), sizes(g.ranks);
  aclError code = exchange(c, g, kAllGather, size, 1, sizes, g.ranks);
  if (code != ACL_SUCCESS) return code;
  const size_t most = 1 + static_cast<size_t>(*std::max_element(sizes.begin(), sizes.end()));
  if (most > kCountable) return c.trap(507018, "more is exchanged than the simulator counts exactly");
  Floats to(most * g.ranks), from(most * g.ranks);
  for (uint32_t r = 0; r < g.ranks; ++r) {
    to[r * most] = static_cast<float>(give[r].size());
    std::copy(give[r].begin(), give[r].end(), to.begin() + static_cast<int64_t>(r * most) + 1);
  }
  code = exchange(c, g, kAllToAll, to, g.ranks, from, g.ranks);
  get.assign(g.ranks, {});
  for (uint32_t r = 0; r < g.ranks; ++r) {
    const auto at = from.begin() + static_cast<int64_t>(r * most) + 1;
    get[r].assign(at, at + static_cast<int64_t>(from[r * most]));
  }
  return code;
}

int named(const Call& c, const char* name) {
  const size_t n = std::strlen(name);
  for (int i = 0; i < c.count; ++i) {
    const char* given = c.name(i);
    if (std::strncmp(given, name, n) != 0) continue;
    for (const char* mark : {"", "Optional", "Out", "Ref", "OutOptional"}) {
      if (!std::strcmp(given + n, mark)) return i;
    }
  }
  return kNone;
}

}  // namespace aclsim
