// Types that clients register with the graph engine, beside those that run by their names.
#include <mutex>

#include "graph/graph.h"
#include "op_compiler/known.h"

namespace ge {

namespace {
struct Registry {
  std::mutex mutex;
  std::map<std::string, OpCreatorV2> creators;
};
// Registrations come from constructors of clients' libraries, and outlive their destructors.
Registry& registry() {
  static auto* types = new Registry;
  return *types;
}
void add(const std::string& type, OpCreatorV2 creator) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().creators[type] = std::move(creator);
}
OpCreatorV2 creator_of(const std::string& type) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  auto at = registry().creators.find(type);
  return at == registry().creators.end() ? OpCreatorV2() : at->second;
}
}  // namespace

OperatorCreatorRegister::OperatorCreatorRegister(const std::string& type,
                                                 const OpCreator& creator) {
  if (creator) add(type, [creator](const AscendString& name) { return creator(name.GetString()); });
}
OperatorCreatorRegister::OperatorCreatorRegister(const char* type, const OpCreatorV2& creator) {
  if (type && creator) add(type, creator);
}
// Shapes are inferred by operators themselves; a client's rule is not asked.
InferShapeFuncRegister::InferShapeFuncRegister(const std::string&, const InferFunc&) {}
InferShapeFuncRegister::InferShapeFuncRegister(const char*, const InferFunc&) {}

bool OperatorFactory::IsExistOp(const std::string& type) {
  return creator_of(type) || aclsim_knows_type(type.c_str());
}
bool OperatorFactory::IsExistOp(const char* type) { return type && IsExistOp(std::string(type)); }
// An operator without an implementation, as the engine gives it, where the type is not known.
Operator OperatorFactory::CreateOperator(const std::string& name, const std::string& type) {
  if (OpCreatorV2 creator = creator_of(type)) return creator(AscendString(name.c_str()));
  return aclsim_knows_type(type.c_str()) ? Operator(name, type) : Operator();
}
Operator OperatorFactory::CreateOperator(const char* name, const char* type) {
  return CreateOperator(std::string(name ? name : ""), std::string(type ? type : ""));
}

StatusFactory* StatusFactory::Instance() {
  static auto* texts = new StatusFactory;
  return texts;
}

// Clients start the engine before they run operators by type name; there is nothing to start.
uint32_t GEInitialize(const std::map<std::string, std::string>&) { return 0; }
uint32_t GEFinalize() { return 0; }

}  // namespace ge
