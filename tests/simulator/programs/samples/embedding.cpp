// prints: 5 6 1 2 5 6 | 10 1
// Rows of a table by their numbers; a null table is refused, and the program goes on.
#include <aclnnop/aclnn_embedding.h>

#include "sample.h"

int main() {
  Session session;
  DeviceTensor<float> table({1, 2, 3, 4, 5, 6}, {3, 2}, ACL_FLOAT);
  DeviceTensor<int64_t> tokens({2, 0, 2}, {3}, ACL_INT64);
  DeviceTensor<float> out(std::vector<float>(6), {3, 2}, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  int code = aclnnEmbeddingGetWorkspaceSize(nullptr, tokens.handle, out.handle, &size, &executor);
  bool told = aclGetRecentErrMsg() != nullptr && executor == nullptr;
  OK_OR_EXIT(aclnnEmbeddingGetWorkspaceSize(table.handle, tokens.handle, out.handle, &size,
                                            &executor));
  run(aclnnEmbedding, size, executor, session.stream);
  out.print();
  std::printf("| %d %d", code == 161001 ? 10 : code, told);
}
