// Copies what chosen launches read and wrote, by waiting for their stream before and after.
#pragma once

#include "core.h"

namespace layers {

// Which launches: `all`, `first` (of each distinct call), `1/N`, `op=GLOB`. False for anything else.
bool add_data_rule(const std::string& text);
void forget_data_rules();
void limit_data(uint64_t bytes);  // of one tensor; more is left out
bool data_is_on();
void data_before(const Frame& frame, Call* call);
void data_after(const Frame& frame, const Call& call);

}  // namespace layers
