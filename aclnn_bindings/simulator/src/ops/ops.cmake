# What the kernels need: the BLAS they load lazily, and a library that stays mapped while its pool
# threads live.
target_link_options(opapi PRIVATE -Wl,-z,nodelete)
# Its products are rounded before they are added.
set_source_files_properties(src/loops/few_lines.cpp PROPERTIES COMPILE_OPTIONS -ffp-contract=off
                            SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)

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
