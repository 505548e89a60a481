// How a universal function is declared: lists of them end with no name.
#pragma once
#include <cstdint>

using Loop = void (*)(char**, const intptr_t*, const intptr_t*, void*);

struct Universal {
  const char* name;
  const char* signature;  // nullptr: element by element
  int operands, results, kinds;
  char types[20];  // numpy's numbers of dtypes, of each loop's operands and results
  Loop loops[4];   // of each kind
};
extern const Universal LINES[], ELEMENTS[], FACTORS[], GATES[], ORDERS[], PRODUCTS[], SMOOTH[];
