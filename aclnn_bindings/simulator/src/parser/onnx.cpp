#include "parser/parser.h"

namespace ge {

GRAPH_API graphStatus aclgrphParseONNX(const char*, const Options&, Graph&) {
  return no_engine(__func__);
}
GRAPH_API graphStatus aclgrphParseONNXFromMem(const char*, size_t, const Options&, Graph&) {
  return no_engine(__func__);
}

}  // namespace ge
