#include "parser/parser.h"

namespace ge {

GRAPH_API graphStatus aclgrphParseTensorFlow(const char*, Graph&) { return no_engine(__func__); }
GRAPH_API graphStatus aclgrphParseTensorFlow(const char*, const Options&, Graph&) {
  return no_engine(__func__);
}
GRAPH_API graphStatus aclgrphParseCaffe(const char*, const char*, Graph&) {
  return no_engine(__func__);
}
GRAPH_API graphStatus aclgrphParseCaffe(const char*, const char*, const Options&, Graph&) {
  return no_engine(__func__);
}

}  // namespace ge
