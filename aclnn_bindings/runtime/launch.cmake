# The extension module aclnn_bindings.runtime._launch: the entry points of launch/api.h through cffi.
set(launch_dir "${CMAKE_CURRENT_LIST_DIR}/launch")
set(launch_source "${CMAKE_CURRENT_BINARY_DIR}/_launch.c")

add_custom_command(
  OUTPUT "${launch_source}"
  COMMAND "${Python_EXECUTABLE}" "${launch_dir}/build.py" "${launch_source}"
  DEPENDS "${launch_dir}/build.py" "${launch_dir}/api.h"
  COMMENT "Writing _launch.c"
  VERBATIM)

Python_add_library(_launch MODULE ${API} WITH_SOABI
  "${launch_source}"
  "${launch_dir}/state.cpp"
  "${launch_dir}/allocator.cpp"
  "${launch_dir}/caller.cpp"
  "${launch_dir}/device.cpp"
  "${launch_dir}/guard.cpp"
  "${launch_dir}/launch.cpp"
  "${launch_dir}/memory.cpp"
  "${launch_dir}/plan.cpp"
  "${launch_dir}/sharing.cpp"
  "${launch_dir}/stream.cpp")
set_target_properties(_launch PROPERTIES UNITY_BUILD ${MINDTORCH_UNITY} UNITY_BUILD_BATCH_SIZE 5)
target_include_directories(_launch PRIVATE "${launch_dir}")
target_link_libraries(_launch PRIVATE ${CMAKE_DL_LIBS})
target_compile_options(_launch PRIVATE
  $<$<COMPILE_LANGUAGE:CXX>:${MINDTORCH_OPTIMIZE};-Wall;-Wextra;-fvisibility=hidden;-fno-plt>
  $<$<COMPILE_LANGUAGE:C>:${MINDTORCH_OPTIMIZE};-fvisibility=hidden>)

Python_add_library(_block MODULE ${API} WITH_SOABI
  "${launch_dir}/block.c"
  "${launch_dir}/module.c"
  "${launch_dir}/operator.c")
target_compile_options(_block PRIVATE ${MINDTORCH_OPTIMIZE} -Wall -Wextra -Wno-missing-field-initializers
  -fvisibility=hidden)

# A tree that was built before would go on importing what it has for its own Python alone.
install(CODE [[
  file(GLOB EARLIER "${CMAKE_INSTALL_PREFIX}/aclnn_bindings/runtime/_launch.*.so"
                    "${CMAKE_INSTALL_PREFIX}/aclnn_bindings/runtime/_block.*.so")
  if(EARLIER)
    file(REMOVE ${EARLIER})
  endif()
]])
install(TARGETS _launch _block DESTINATION aclnn_bindings/runtime)
