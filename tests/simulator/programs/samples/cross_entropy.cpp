// prints: 0.836988 0.125 -0.125 0.375 -0.375
// Log-softmax and negative log-likelihood, then both backwards: the gradient of the scores.
#include <aclnnop/aclnn_logsoftmax.h>
#include <aclnnop/aclnn_logsoftmax_backward.h>
#include <aclnnop/aclnn_nll_loss.h>
#include <aclnnop/aclnn_nll_loss_backward.h>

#include <cmath>

#include "sample.h"

int main() {
  Session session;
  const float three = std::log(3.0f);
  const int64_t mean = 1, nothing_ignored = -100;
  DeviceTensor<float> scores({0, three, three, 0}, {2, 2}, ACL_FLOAT);
  DeviceTensor<float> weight({1, 1}, {2}, ACL_FLOAT);
  DeviceTensor<int64_t> target({1, 1}, {2}, ACL_INT64);
  DeviceTensor<float> logs(std::vector<float>(4), {2, 2}, ACL_FLOAT), loss({0}, {}, ACL_FLOAT);
  DeviceTensor<float> total({0}, {}, ACL_FLOAT), one({1}, {}, ACL_FLOAT);
  DeviceTensor<float> inner(std::vector<float>(4), {2, 2}, ACL_FLOAT);
  DeviceTensor<float> gradient(std::vector<float>(4), {2, 2}, ACL_FLOAT);
  Queue queue(session.stream);
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnLogSoftmaxGetWorkspaceSize(scores.handle, 1, logs.handle, &size, &executor));
  queue.launch(aclnnLogSoftmax, size, executor);
  OK_OR_EXIT(aclnnNLLLossGetWorkspaceSize(logs.handle, target.handle, weight.handle, mean,
                                          nothing_ignored, loss.handle, total.handle, &size,
                                          &executor));
  queue.launch(aclnnNLLLoss, size, executor);
  OK_OR_EXIT(aclnnNLLLossBackwardGetWorkspaceSize(one.handle, logs.handle, target.handle,
                                                  weight.handle, mean, nothing_ignored,
                                                  total.handle, inner.handle, &size, &executor));
  queue.launch(aclnnNLLLossBackward, size, executor);
  OK_OR_EXIT(aclnnLogSoftmaxBackwardGetWorkspaceSize(inner.handle, logs.handle, 1, gradient.handle,
                                                     &size, &executor));
  queue.launch(aclnnLogSoftmaxBackward, size, executor);
  queue.wait();
  loss.print();
  gradient.print();
}
