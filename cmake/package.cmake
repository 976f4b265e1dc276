# liblatile, one shared library with all of it, and its installation.
set(latile_parts latile_tool latile_meaning latile_interpreter latile_compiler latile_emit latile_passes latile_host
  latile_dialect latile_layout latile_runtime latile_records latile_ops latile_dsl)
add_library(latile SHARED ${PROJECT_SOURCE_DIR}/compiler/Library.cpp)
set(whole -Wl,--whole-archive)
foreach(part ${latile_parts})
  list(APPEND whole $<TARGET_FILE:${part}>)
endforeach()
add_dependencies(latile ${latile_parts})
# The second mention of the parts is for what they link to; their objects are all in by then.
target_link_libraries(latile PRIVATE ${whole} -Wl,--no-whole-archive ${latile_parts})
target_link_options(latile PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/latile.map)
set_target_properties(latile PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/latile.map" INSTALL_RPATH_USE_LINK_PATH ON)
set_target_properties(latile_command PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
target_include_directories(latile INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(latile INTERFACE cxx_std_20 c_std_11)

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/latile)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/latileConfig.cmake.in
  ${PROJECT_BINARY_DIR}/latileConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/latileConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(TARGETS latile EXPORT latileTargets COMPONENT latile)
install(TARGETS latile_command COMPONENT latile)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/latile DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT latile
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT latileTargets NAMESPACE latile:: DESTINATION ${package_dir} COMPONENT latile)
install(FILES ${PROJECT_BINARY_DIR}/latileConfig.cmake ${PROJECT_BINARY_DIR}/latileConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT latile)
