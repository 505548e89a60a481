# What the kernels need: loops that vectorise (their clones for wider machines are chosen at load
# time), the BLAS they load lazily, and a library that stays mapped while its pool threads live.
foreach(LEVEL fast middle plain)
  get_target_property(OPTIONS aclsim_${LEVEL} COMPILE_OPTIONS)
  if((MINDTORCH_SANITIZE OR MINDTORCH_TSAN) AND MINDTORCH_SANITIZE_KERNELS)
    # What these see ASan sees at run time; they are half of the checks, and of the time to compile.
    if(MINDTORCH_SANITIZE)
      list(APPEND OPTIONS -fno-sanitize=null,object-size,nonnull-attribute)
    endif()
  else()
    # Without sanitizers they are compiled as for a release: a compiler's cache serves both builds.
    get_directory_property(SANITIZERS COMPILE_OPTIONS)
    list(REMOVE_ITEM OPTIONS ${SANITIZERS} -O2)
    list(APPEND OPTIONS ${${LEVEL}_LEVEL})
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
      list(APPEND OPTIONS -mprefer-vector-width=512)
    endif()
  endif()
  set_target_properties(aclsim_${LEVEL} PROPERTIES COMPILE_OPTIONS "${OPTIONS}")
endforeach()
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
