// Records on their way to the client: kept here until buffers that the client gives take them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <mspti/mspti.h>

namespace aclsim::mspti {

// Bytes of a record of that kind in a buffer; 0 for no kind.
size_t record_bytes(msptiActivityKind kind);

void give_callbacks(msptiBuffersCallbackRequestFunc request,
                    msptiBuffersCallbackCompleteFunc complete);
// Hands on what waits, now, by the calling thread; nothing where a callback of it calls this again.
void flush();
// Every so many milliseconds what waits is put into buffers, and full ones are handed on; 0: never.
void flush_every(uint32_t milliseconds);

void append_bytes(const void* record, size_t bytes);
template <class Record>
void append(const Record& record) {
  append_bytes(&record, sizeof record);
}

}  // namespace aclsim::mspti
