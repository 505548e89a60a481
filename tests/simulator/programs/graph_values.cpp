// The graph engine's classes through the part of their interface that is declared here, compiled
// with the old C++ ABI as CANN's clients are.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#define CHECK(condition)                                            \
  do {                                                              \
    if (!(condition)) {                                             \
      printf("%s:%d not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(3);                                                      \
    }                                                               \
  } while (0)

namespace ge {
class AscendString {
 public:
  AscendString(const char* name);
  const char* GetString() const;

 private:
  std::shared_ptr<std::string> name_;
};
class Operator {
 public:
  Operator() {}
  Operator(const char* name, const char* type);
  virtual ~Operator() = default;
  std::string GetName() const;
  std::string GetOpType() const;
  Operator& SetAttr(const char* name, int64_t value);
  Operator& SetAttr(const char* name, const std::vector<int64_t>& value);
  Operator& SetAttr(const std::string& name, const std::string& value);
  uint32_t GetAttr(const char* name, int32_t& value) const;
  uint32_t GetAttr(const char* name, float& value) const;
  uint32_t GetAttr(const char* name, std::vector<int32_t>& value) const;
  uint32_t GetAttr(const std::string& name, std::string& value) const;

 private:
  std::shared_ptr<void> impl_;
};
class OperatorFactory {
 public:
  static Operator CreateOperator(const char* name, const char* type);
  static bool IsExistOp(const char* type);
};
class OperatorCreatorRegister {
 public:
  OperatorCreatorRegister(const char* type, const std::function<Operator(const AscendString&)>& creator);
};
}  // namespace ge

static ge::OperatorCreatorRegister own("OwnType", [](const ge::AscendString& name) {
  ge::Operator op(name.GetString(), "OwnType");
  op.SetAttr("axis", int64_t{-1});
  return op;
});

int main() {
  CHECK(ge::OperatorFactory::IsExistOp("OwnType") && ge::OperatorFactory::IsExistOp("Conv2D"));
  CHECK(!ge::OperatorFactory::IsExistOp("NoSuchType"));
  ge::Operator op = ge::OperatorFactory::CreateOperator("one", "OwnType");
  CHECK(op.GetName() == "one" && op.GetOpType() == "OwnType");
  int32_t axis = 0;
  float wrong = 0;
  CHECK(op.GetAttr("axis", axis) == 0 && axis == -1);
  CHECK(op.GetAttr("axis", wrong) != 0 && op.GetAttr("none", axis) != 0);
  ge::Operator copy = op;  // shares what it describes
  copy.SetAttr("pads", std::vector<int64_t>{1, 2}).SetAttr(std::string("mode"), std::string("same"));
  std::vector<int32_t> pads;
  std::string mode;
  CHECK(op.GetAttr("pads", pads) == 0 && pads.size() == 2 && pads[1] == 2);
  CHECK(op.GetAttr(std::string("mode"), mode) == 0 && mode == "same");
  CHECK(ge::OperatorFactory::CreateOperator("two", "NoSuchType").GetName().empty());
  printf("done\n");
}
