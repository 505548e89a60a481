// The functions whose meaning a layer must know, by what they do; every other one is data alone.
#pragma once

#include "core.h"

namespace layers {

enum class Role : uint8_t {
  Other, PhaseOne, PhaseTwo,
  CreateTensor, InitTensor, DestroyTensor, SetTensorAddress, SetExecutorAddress,
  CreateScalar, CreateIntArray, CreateBoolArray, CreateFloatArray, DestroyValue,
  CreateTensorList, CreateScalarList, DestroyList,
  Repeat, DestroyExecutor,
  Malloc, Free, FreeWithSync, MallocHost, FreeHost,
  Copy, CopyAsync, Fill, FillAsync,
  Reserve, Release,
  CreateStream, DestroyStream, CreateEvent, DestroyEvent, RecordEvent, WaitEvent,
  SynchronizeStream, SynchronizeEvent, SynchronizeDevice, QueryStream, QueryEvent,
  SetDevice, ResetDevice, CreateContext, DestroyContext, SetContext,
  Initialize, Finalize,
};

Role role_of(const char* name, const Row& row);

}  // namespace layers
