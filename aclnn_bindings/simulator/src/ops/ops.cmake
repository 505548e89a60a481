# What the kernels need: loops that vectorise (their clones for wider machines are chosen at load
# time), the BLAS they load lazily, and a library that stays mapped while its pool threads live.
set(KERNEL_FLAGS -O3)
if(MINDTORCH_SANITIZE OR MINDTORCH_TSAN)
  set(KERNEL_FLAGS)
  if(MINDTORCH_SANITIZE)
    # What these see ASan sees at run time; they are half of the checks, and of the time to compile.
    list(APPEND KERNEL_FLAGS -fno-sanitize=null,object-size,nonnull-attribute)
  endif()
  if(NOT MINDTORCH_SANITIZE_KERNELS)
    list(APPEND KERNEL_FLAGS -g0 -fno-sanitize=all)
  endif()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND KERNEL_FLAGS -mprefer-vector-width=512)
endif()
set_source_files_properties(${loops_SOURCES} ${ops_SOURCES} PROPERTIES
                            COMPILE_OPTIONS "${KERNEL_FLAGS}")
target_link_options(opapi PRIVATE -Wl,-z,nodelete)

# OpenBLAS from the build requirement scipy-openblas32 (or OPENBLAS_DIR, where the build is for another
# machine) goes beside libopapi.so; without it matrix products use the kernels' own loops.
if(NOT OPENBLAS_DIR)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "import scipy_openblas32 as b; print(b.get_lib_dir(), end='')"
    OUTPUT_VARIABLE OPENBLAS_DIR ERROR_QUIET)
endif()
if(NOT OPENBLAS_DIR)
  message(STATUS "scipy-openblas32 not found: matrix products of the simulator will be slow")
else()
  file(GLOB OPENBLAS_FILES "${OPENBLAS_DIR}/*.so*")
  install(FILES ${OPENBLAS_FILES} DESTINATION aclnn_bindings/simulator/cann/lib64)
  file(GLOB OPENBLAS_LICENSE "${OPENBLAS_DIR}/../../scipy_openblas32-*.dist-info/licenses/LICENSE.txt")
  if(OPENBLAS_LICENSE)
    install(FILES ${OPENBLAS_LICENSE} DESTINATION aclnn_bindings/simulator/cann/lib64
            RENAME libscipy_openblas.LICENSE.txt)
  endif()
endif()
