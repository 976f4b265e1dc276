# Two libraries. liblatile_runtime: the C interface, plans, devices, cache; without LLVM and without a vendor's library.
# liblatile: the language, the compiler and the command, on top of it.
set(latile_runtime_parts latile_runtime latile_records latile_operator_info)
foreach(part ${latile_runtime_parts})
  list(APPEND runtime_objects $<TARGET_OBJECTS:${part}>)
endforeach()
add_library(latile_runtime_shared SHARED ${runtime_objects})
add_library(latile_runtime_static STATIC ${runtime_objects})
target_link_options(latile_runtime_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/latile.map
  $<$<CXX_COMPILER_ID:Clang>:-fuse-ld=lld>)
set_target_properties(latile_runtime_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/latile.map" EXPORT_NAME runtime)
set_target_properties(latile_runtime_static PROPERTIES EXPORT_NAME runtime_static
  ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
foreach(library latile_runtime_shared latile_runtime_static)
  target_link_libraries(${library} PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME latile_runtime)
  target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${library} INTERFACE cxx_std_20 c_std_11)
endforeach()

set(latile_parts latile_tool latile_meaning latile_interpreter latile_compiler latile_emit latile_passes latile_simt_passes
  latile_host latile_dialect latile_layout latile_ops latile_dsl latile_emulated)
add_library(latile SHARED ${PROJECT_SOURCE_DIR}/compiler/Library.cpp)
set(whole -Wl,--whole-archive)
foreach(part ${latile_parts})
  list(APPEND whole $<TARGET_FILE:${part}>)
endforeach()
add_dependencies(latile ${latile_parts})
# The shared runtime comes before the archives that the parts link to, so that nothing of it is taken a second time.
target_link_libraries(latile PUBLIC latile_runtime_shared)
# The second mention of the parts is for what they link to; their objects are all in by then.
target_link_libraries(latile PRIVATE ${whole} -Wl,--no-whole-archive ${latile_parts})
target_link_options(latile PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/latile.map)
set_target_properties(latile PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/latile.map" INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)
set_target_properties(latile_command PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
target_include_directories(latile INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(latile INTERFACE cxx_std_20 c_std_11)

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/latile)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/latileConfig.cmake.in
  ${PROJECT_BINARY_DIR}/latileConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/latileConfigVersion.cmake COMPATIBILITY SameMinorVersion)
# Component runtime: liblatile_runtime and what a user of the C interface needs. Component latile: all the rest.
install(TARGETS latile_runtime_shared latile_runtime_static EXPORT latileRuntimeTargets COMPONENT runtime)
install(EXPORT latileRuntimeTargets NAMESPACE latile:: DESTINATION ${package_dir} COMPONENT runtime)
install(FILES ${PROJECT_BINARY_DIR}/latileConfig.cmake ${PROJECT_BINARY_DIR}/latileConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT runtime)
set(runtime_headers dlpack.h latile.h latile.hpp)
list(TRANSFORM runtime_headers PREPEND ${PROJECT_SOURCE_DIR}/include/latile/ OUTPUT_VARIABLE runtime_header_files)
install(FILES ${runtime_header_files} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/latile COMPONENT runtime)
install(TARGETS latile EXPORT latileTargets COMPONENT latile)
install(TARGETS latile_command COMPONENT latile)
install(FILES ${PROJECT_SOURCE_DIR}/include/latile/dsl.h ${PROJECT_SOURCE_DIR}/include/latile/table.h
  ${PROJECT_SOURCE_DIR}/include/latile/tool.h ${PROJECT_SOURCE_DIR}/include/latile/types.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/latile COMPONENT latile)
install(EXPORT latileTargets NAMESPACE latile:: DESTINATION ${package_dir} COMPONENT latile)
