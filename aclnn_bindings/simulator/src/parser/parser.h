// Parsers of models into graphs, as CANN's documents of aclgrphParseONNX and aclgrphParseTensorFlow
// (9.1) declare them. There is no graph engine here, so that each refuses by its name.
#pragma once

#include "ascendcl/refuse.h"
#include "graph/graph.h"

namespace ge {

using Options = std::map<AscendString, AscendString>;

inline graphStatus no_engine(const char* function) {
  aclsim::refuse(function);
  return GRAPH_FAILED;
}

}  // namespace ge
