#include "nnopbase/fault_plan.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "ascendcl/config.h"
#include "ascendcl/hardware_faults.h"
#include "nnopbase/kernel_binding.h"

namespace aclsim {

namespace {

struct FaultKind {
  const char* name;
  Fault fault;
  bool phase_one;     // acts where the device is not known yet
  int64_t least = 0;  // of the number after @, which a kind with `most` needs
  int64_t most = 0;   // 0: takes no number
};

constexpr FaultKind kKinds[] = {
    {"tail", Fault::Tail, false}, {"zeros", Fault::Zeros, false}, {"lastk", Fault::LastK, true},
    {"lowacc", Fault::LowAcc, false}, {"nan", Fault::Nan, false},
    {"workspace", Fault::Workspace, true}, {"past", Fault::Past, false},
    {"crash", Fault::Crash, false}, {"hang", Fault::Hang, false}, {"code", Fault::Code, true},
    {"trap", Fault::Trap, false}, {"random", Fault::Random, false},
    {"long", Fault::Long, false, 1, INT64_MAX}, {"minuszero", Fault::MinusZero, false},
    {"cutoff", Fault::CutOff, false}, {"dense", Fault::Dense, true},
    {"default", Fault::Default, true}, {"flip", Fault::Flip, false, 1, INT64_MAX},
    {"stuck", Fault::Stuck, false, 0, 127}, {"slow", Fault::Slow, false, 1, 1000000},
    {"ends", Fault::Ends, false}, {"ahead", Fault::Ahead, false}, {"spill", Fault::Spill, true},
    {"race", Fault::Race, false}, {"batch", Fault::Batch, false},
    {"split", Fault::Split, false}, {"hf32", Fault::Hf32, false},
};

// Whole decimal numbers only; false for anything else.
bool whole(const std::string& text, int64_t* number) {
  char* end = nullptr;
  errno = 0;
  *number = strtoll(text.c_str(), &end, 10);
  return !text.empty() && text[0] >= '0' && text[0] <= '9' && !*end && !errno;
}

// `npuD/` before the operator, taken off `name`; what is wrong with it, or nothing.
std::string parse_device(std::string* name, int* device) {
  const size_t slash = name->find('/');
  if (slash == std::string::npos) return "";
  int64_t number;
  if (name->rfind("npu", 0) != 0 || !whole(name->substr(3, slash - 3), &number)) {
    return "expected npuN before the slash";
  }
  if (number >= config().installed) {
    return "there are " + std::to_string(config().installed) + " devices, counted from 0";
  }
  *device = static_cast<int>(number);
  *name = name->substr(slash + 1);
  return "";
}

std::string parse_operator(const std::string& name, Planted* planted) {
  if (name.empty()) return "expected an operator's name, or * for any";
  planted->op = fault_key(name);
  if (planted->op == "*") return "";
  if (binds_key(planted->op)) return "";
  const auto before = [](const char* a, const char* b) { return std::strcmp(a, b) < 0; };
  const bool known = std::binary_search(operator_keys, operator_keys + operator_key_count,
                                        planted->op.c_str(), before);
  return known ? "" : "there is no operator aclnn" + name + " (case does not matter)";
}

// The number after the kind, taken off `kind`.
std::string parse_number(const FaultKind& kind, const std::string& text, bool given,
                         int64_t* number) {
  const std::string name = kind.name;
  if (!kind.most) return given ? name + " takes no number" : "";
  if (!given) return name + " needs a number: " + name + "@N";
  if (!whole(text, number)) return "expected a whole number after @";
  if (*number >= kind.least && *number <= kind.most) return "";
  return "the number after @ is " + std::to_string(kind.least) + " to " + std::to_string(kind.most);
}

std::string parse_kind(std::string text, Planted* planted) {
  const size_t at = text.find('@');
  const bool given = at != std::string::npos;
  const std::string number = given ? text.substr(at + 1) : "";
  text = text.substr(0, at);
  std::string names;
  for (const FaultKind& kind : kKinds) {
    names += std::string(names.empty() ? "" : ", ") + kind.name;
    if (text != kind.name) continue;
    planted->fault = kind.fault;
    if (kind.phase_one && planted->device != kAnyDevice) {
      return text + " acts in phase 1, which knows no device: leave npuN/ out";
    }
    return parse_number(kind, number, given, &planted->number);
  }
  return "the kinds are " + names;
}

std::string parse_one(const std::string& one, Planted* planted) {
  const size_t colon = one.find(':');
  if (colon == std::string::npos) return "expected OPERATOR:KIND";
  *planted = {"", Fault::None, 0, kAnyDevice, one, 0};
  std::string name = one.substr(0, colon);
  std::string wrong = parse_device(&name, &planted->device);
  if (wrong.empty()) wrong = parse_operator(name, planted);
  return wrong.empty() ? parse_kind(one.substr(colon + 1), planted) : wrong;
}

// The first that fits a launch strikes: what an earlier one covers would never.
std::string parse_order(const std::vector<Planted>& earlier, const Planted& planted) {
  for (const Planted& p : earlier) {
    const bool same = p.op == planted.op || p.op == "*";
    if (same && (p.device == planted.device || p.device == kAnyDevice)) {
      return "'" + p.text + "' before it strikes in its place";
    }
  }
  return "";
}

FaultPlan parse(const std::string& all) {
  FaultPlan plan;
  size_t number = 0;
  for (size_t at = 0; at < all.size(); ++number) {
    const size_t end = std::min(all.find(',', at), all.size());
    const std::string one = all.substr(at, end - at);
    Planted planted;
    std::string wrong;
    const bool hardware = parse_hardware_fault(one, &wrong);
    if (!hardware) wrong = parse_one(one, &planted);
    if (!hardware && wrong.empty()) wrong = parse_order(plan.faults, planted);
    planted.number_in_plan = number;
    if (wrong.empty() && !hardware) plan.faults.push_back(planted);
    if (!wrong.empty() && plan.error.empty()) {
      plan.error = "ACLSIM_FAULTS: '" + one + "' is no fault: " + wrong;
    }
    at = end + 1;
  }
  return plan;
}

}  // namespace

std::string fault_key(std::string name) {
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return name.rfind("aclnn", 0) == 0 ? name.substr(5) : name;
}

const FaultPlan& fault_plan() {
  static const char* text = getenv("ACLSIM_FAULTS");
  static const FaultPlan plan = parse(text ? text : "");
  return plan;
}

}  // namespace aclsim
