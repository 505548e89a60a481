// Operators that join products with collectives, between processes: fused_collectives <ranks>.
// Every rank multiplies small whole numbers, so that sums over ranks are exact in float16.
#include <aclnnop/aclnn_all_gather_matmul.h>
#include <aclnnop/aclnn_allto_all_matmul.h>
#include <aclnnop/aclnn_distribute_barrier.h>
#include <aclnnop/aclnn_matmul_all_reduce.h>
#include <aclnnop/aclnn_matmul_all_reduce_add_rms_norm.h>
#include <aclnnop/aclnn_matmul_allto_all.h>
#include <aclnnop/aclnn_matmul_reduce_scatter.h>
#include <hccl/hccl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <string>

#include "kit.h"

struct Shared {
  HcclRootInfo info;
  std::atomic<int> ready;
};
static Shared* shared;
static uint32_t rank, ranks;
constexpr int64_t kRows = 4, kInner = 3, kCols = 2;  // rows per rank of what is gathered

struct Member : Kit {
  HcclComm comm = nullptr;
  char group[128] = {};
  Member() {
    while (rank && !shared->ready.load()) usleep(100);
    if (!rank) {
      MUST(HcclGetRootInfo(&shared->info));
      shared->ready.store(1);
    }
    MUST(HcclCommInitRootInfo(ranks, &shared->info, rank, &comm));
    MUST(HcclGetCommName(comm, group));
  }
  void launch(uint64_t size, aclOpExecutor* x,
              aclnnStatus (*second)(void*, uint64_t, aclOpExecutor*, aclrtStream)) {
    MUST(second(size ? Kit::device(size) : nullptr, size, x, stream));
    MUST(aclrtSynchronizeStream(stream));
  }
};
struct Half {
  aclTensor* tensor;
  void* data;
  size_t count;
  Half(std::vector<int64_t> dims, const std::vector<float>& values) : count(values.size()) {
    std::vector<aclFloat16> bits(count);
    for (size_t i = 0; i < count; ++i) bits[i] = aclFloatToFloat16(values[i]);
    data = Kit::device(count * 2);
    MUST(aclrtMemcpy(data, count * 2, bits.data(), count * 2, ACL_MEMCPY_HOST_TO_DEVICE));
    std::vector<int64_t> strides(dims.size(), 1);
    for (size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
    tensor = aclCreateTensor(dims.data(), dims.size(), ACL_FLOAT16, strides.data(), 0,
                             ACL_FORMAT_ND, dims.data(), dims.size(), data);
    CHECK(tensor);
  }
  std::vector<float> values() const {
    std::vector<aclFloat16> bits(count);
    MUST(aclrtMemcpy(bits.data(), count * 2, data, count * 2, ACL_MEMCPY_DEVICE_TO_HOST));
    std::vector<float> out;
    for (aclFloat16 b : bits) out.push_back(aclFloat16ToFloat(b));
    return out;
  }
};
static float left(uint32_t r, int64_t i, int64_t k) { return static_cast<float>((i + k + r) % 3); }
static float right(uint32_t r, int64_t k, int64_t j) {
  return static_cast<float>((2 * k + j + r) % 3);
}
static float cell(uint32_t a, uint32_t b, int64_t i, int64_t j) {
  float sum = 0;
  for (int64_t k = 0; k < kInner; ++k) sum += left(a, i, k) * right(b, k, j);
  return sum;
}
static float summed(int64_t i, int64_t j) {
  float sum = 0;
  for (uint32_t r = 0; r < ranks; ++r) sum += cell(r, r, i, j) + 1;  // every rank adds its bias
  return sum;
}
static std::vector<float> filled(int64_t rows, int64_t cols,
                                 float (*f)(uint32_t, int64_t, int64_t)) {
  std::vector<float> v;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) v.push_back(f(rank, i, j));
  }
  return v;
}

static void work() {
  Member m;
  Half x1({kRows, kInner}, filled(kRows, kInner, left)),
      x2({kInner, kCols}, filled(kInner, kCols, right)), bias({kCols}, {1, 1});
  uint64_t size = 0;
  aclOpExecutor* x = nullptr;
  if (std::getenv("ACLSIM_SOC")) {  // a product that has the barrier, and lacks the others
    MUST(aclnnDistributeBarrierGetWorkspaceSize(x1.tensor, m.group, ranks, &size, &x));
    m.launch(size, x, aclnnDistributeBarrier);
    CHECK(x1.values() == filled(kRows, kInner, left));
    MUST(HcclCommDestroy(m.comm));
    return;
  }
  Half sum({kRows, kCols}, std::vector<float>(kRows * kCols));
  MUST(aclnnMatmulAllReduceGetWorkspaceSize(x1.tensor, x2.tensor, bias.tensor, m.group, "sum", 0, 1,
                                            sum.tensor, &size, &x));
  m.launch(size, x, aclnnMatmulAllReduce);
  const std::vector<float> sums = sum.values();
  for (int64_t i = 0; i < kRows * kCols; ++i) CHECK(sums[i] == summed(i / kCols, i % kCols));

  Half all({kRows * ranks, kCols}, std::vector<float>(kRows * ranks * kCols)),
      gathered({kRows * ranks, kInner}, std::vector<float>(kRows * ranks * kInner));
  MUST(aclnnAllGatherMatmulGetWorkspaceSize(x1.tensor, x2.tensor, nullptr, m.group, 0, 0, 1,
                                            all.tensor, gathered.tensor, &size, &x));
  m.launch(size, x, aclnnAllGatherMatmul);
  const std::vector<float> rows = all.values(), operands = gathered.values();
  for (int64_t i = 0; i < kRows * ranks * kCols; ++i) {
    CHECK(rows[i] == cell(i / kCols / kRows, rank, i / kCols % kRows, i % kCols));
  }
  for (int64_t i = 0; i < kRows * ranks * kInner; ++i)
    CHECK(operands[i] == left(i / kInner / kRows, i / kInner % kRows, i % kInner));

  Half part({kRows / ranks, kCols}, std::vector<float>(kRows / ranks * kCols));
  MUST(aclnnMatmulReduceScatterGetWorkspaceSize(x1.tensor, x2.tensor, bias.tensor, m.group, "sum",
                                                0, 1, part.tensor, &size, &x));
  m.launch(size, x, aclnnMatmulReduceScatter);
  const std::vector<float> own = part.values();
  for (int64_t i = 0; i < kRows / ranks * kCols; ++i)
    CHECK(own[i] == summed(rank * (kRows / ranks) + i / kCols, i % kCols));

  Half residual({1, kRows, kCols}, std::vector<float>(kRows * kCols, 1)), gamma({kCols}, {1, 2}),
      y({1, kRows, kCols}, sums), norm({1, kRows, kCols}, sums);
  MUST(aclnnMatmulAllReduceAddRmsNormGetWorkspaceSize(
      x1.tensor, x2.tensor, bias.tensor, residual.tensor, gamma.tensor, 1e-6, m.group, "sum", 0, 1,
      y.tensor, norm.tensor, &size, &x));
  m.launch(size, x, aclnnMatmulAllReduceAddRmsNorm);
  const std::vector<float> ys = y.values(), norms = norm.values();
  for (int64_t i = 0; i < kRows; ++i) {
    const float a = summed(i, 0) + 1, b = summed(i, 1) + 1,
                root = std::sqrt((a * a + b * b) / 2 + 1e-6f);
    CHECK(ys[i * kCols] == a && ys[i * kCols + 1] == b);
    CHECK(std::fabs(norms[i * kCols] - a / root) < 2e-3f &&
          std::fabs(norms[i * kCols + 1] - 2 * b / root) < 4e-3f);
  }
  const int64_t rowsHere = kRows / ranks, inner = kInner * ranks;
  Half wide({inner, kCols}, filled(inner, kCols, right)),
      turned({rowsHere, kCols}, std::vector<float>(rowsHere * kCols)),
      sides({rowsHere, inner}, std::vector<float>(rowsHere * inner));
  MUST(aclnnAlltoAllMatmulGetWorkspaceSize(x1.tensor, wide.tensor, bias.tensor, nullptr, m.group, 0,
                                           0, turned.tensor, sides.tensor, &size, &x));
  m.launch(size, x, aclnnAlltoAllMatmul);
  const std::vector<float> products = turned.values(), beside = sides.values();
  for (int64_t i = 0; i < rowsHere * kCols; ++i) {
    float sum = 1;
    for (int64_t k = 0; k < inner; ++k) {
      const float value = left(k / kInner, rank * rowsHere + i / kCols, k % kInner);
      CHECK(beside[i / kCols * inner + k] == value);
      sum += value * right(rank, k, i % kCols);
    }
    CHECK(products[i] == sum);
  }
  const int64_t wideCols = kCols * ranks;
  Half broad({kInner, wideCols}, filled(kInner, wideCols, right)),
      stacked({kRows * ranks, kCols}, std::vector<float>(kRows * ranks * kCols));
  MUST(aclnnMatmulAlltoAllGetWorkspaceSize(x1.tensor, broad.tensor, nullptr, nullptr, m.group, 0, 0,
                                           stacked.tensor, &size, &x));
  m.launch(size, x, aclnnMatmulAlltoAll);
  const std::vector<float> stack = stacked.values();
  for (int64_t i = 0; i < kRows * ranks * kCols; ++i) {
    const uint32_t from = i / kCols / kRows;
    CHECK(stack[i] == cell(from, from, i / kCols % kRows, rank * kCols + i % kCols));
  }
  CHECK(aclnnMatmulAllReduceGetWorkspaceSize(x1.tensor, x2.tensor, nullptr, "nobody", "sum", 0, 1,
                                             sum.tensor, &size, &x) == 161002);
  MUST(HcclCommDestroy(m.comm));
}

int main(int, char** argv) {
  ranks = static_cast<uint32_t>(std::stoul(argv[1]));
  shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<pid_t> children;
  for (uint32_t r = 0; r < ranks; ++r) {
    pid_t child = fork();
    if (child == 0) {
      rank = r;
      work();
      _exit(0);
    }
    children.push_back(child);
  }
  int failed = 0;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed |= status;
  }
  if (!failed) printf("done\n");
  return failed ? 1 : 0;
}
