# Kernels by how far they are optimised. Plain: operators of models at scale, which mindtorch's cpu does not run
# and no benchmark measures; a third of the sources. Middle: the rest without loops for wider machines (ACL_VECTOR).
if(MINDTORCH_SANITIZE)
  # What these see ASan sees at run time; they are half of the checks, and of the time to compile.
  set(ALL_LEVELS -fno-sanitize=null,object-size,nonnull-attribute)
elseif(NOT MINDTORCH_TSAN)
  set(fast_LEVEL -O3)
  set(middle_LEVEL -O2 -ftree-vectorize -fvect-cost-model=dynamic)
  set(plain_LEVEL -O1)
  # Loops vectorise; their clones for wider machines are chosen at load time.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(ALL_LEVELS -mprefer-vector-width=512)
  endif()
endif()
set(plain
  collective/ detection/ kv_cache/ moe/ quantization/ residual/ rotary/ sampling/ state/
  activation/clipped activation/gated activation/masked activation/rrelu
  attention/[^f] attention/floyd convolution/causal convolution/conv_tbc convolution/masked
  image/[^g] image/geometry matmul/[^d] norm/batch norm/fused norm/micro)
set(middle
  attention/ creation/ embedding/bag fft/ foreach/ indexing/[^g] linalg/ loss/[^e] matmul/ optimizer/ random/
  rnn/ shape/ sorting/)
set(fast_SOURCES ${loops_SOURCES} ${ops_SOURCES})
foreach(LEVEL plain middle)
  set(${LEVEL}_SOURCES)
  foreach(NAMED ${${LEVEL}})
    set(SOURCES ${fast_SOURCES})
    list(FILTER SOURCES INCLUDE REGEX "/ops/${NAMED}")
    if(NOT SOURCES)
      message(FATAL_ERROR "levels.cmake: no kernel is in ${NAMED}")
    endif()
    list(APPEND ${LEVEL}_SOURCES ${SOURCES})
    list(REMOVE_ITEM fast_SOURCES ${SOURCES})
  endforeach()
endforeach()
