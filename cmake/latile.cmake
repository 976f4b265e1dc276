# Flags and the two kinds of library: plain ones, and those that include MLIR (one shared precompiled header).
add_library(latile_flags INTERFACE)
target_include_directories(latile_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>)
target_compile_options(latile_flags INTERFACE -Wall -Wextra $<$<BOOL:${LATILE_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False positives of g++ 12 inside libstdc++'s strings (its bugs 105651 and 105329).
  target_compile_options(latile_flags INTERFACE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_link_options(latile_flags INTERFACE -fuse-ld=lld)
endif()

add_library(latile_mlir INTERFACE)
target_link_libraries(latile_mlir INTERFACE latile_flags MLIR LLVM)
target_include_directories(latile_mlir SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})

# The holder of the precompiled header, built once.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/pch.cpp CONTENT "")  # written only when it differs
add_library(latile_pch OBJECT ${PROJECT_BINARY_DIR}/pch.cpp)
target_link_libraries(latile_pch PRIVATE latile_mlir)
target_precompile_headers(latile_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/pch.h)

# latile_library(NAME sources...): a plain static library.
function(latile_library name)
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PUBLIC latile_flags)
endfunction()

# latile_mlir_library(NAME sources...): a static library that includes MLIR.
function(latile_mlir_library name)
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PUBLIC latile_mlir)
  target_precompile_headers(${name} REUSE_FROM latile_pch)
  add_dependencies(${name} latile_tile_inc)
endfunction()
