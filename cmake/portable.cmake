# latile-portable: the command as one file with LLVM and MLIR inside, for machines that have neither. It needs libc, libm
# and a C library as new as the build machine's. Not part of `all`: bench/portable.sh builds, strips and packs it.
find_library(LATILE_ZLIB_ARCHIVE libz.a)
find_library(LATILE_ZSTD_ARCHIVE libzstd.a)
if(NOT TARGET MLIRIR OR NOT TARGET LLVMSupport OR NOT LATILE_ZLIB_ARCHIVE OR NOT LATILE_ZSTD_ARCHIVE)
  message(STATUS "latile-portable is left out: the archives of LLVM, MLIR, zlib or zstd are missing")
  return()
endif()

# Debian exports each MLIR archive with the shared libLLVM as a dependency, and LLVMSupport with libraries that are only
# there at run time.
get_property(mlir_libraries GLOBAL PROPERTY MLIR_ALL_LIBS)
set(mlir_archives "")
foreach(library ${mlir_libraries})
  if(TARGET ${library})
    get_target_property(needs ${library} INTERFACE_LINK_LIBRARIES)
    if(needs)
      list(REMOVE_ITEM needs LLVM)
      set_target_properties(${library} PROPERTIES INTERFACE_LINK_LIBRARIES "${needs}")
    endif()
  endif()
endforeach()
foreach(library MLIRIR MLIRParser MLIRPass MLIRTransforms MLIRTransformUtils MLIRArithDialect MLIRMathDialect
        MLIRSCFDialect)
  list(APPEND mlir_archives ${library})
endforeach()
set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES
  "rt;dl;m;${LATILE_ZLIB_ARCHIVE};${LATILE_ZSTD_ARCHIVE};LLVMDemangle")
set_target_properties(LLVMExtensions PROPERTIES INTERFACE_LINK_LIBRARIES LLVMSupport)  # without Polly
# lld initialises every target that LLVM was built with; those that latile has no code for are left out.
set(present ${LLVM_TARGETS_TO_BUILD} ${LLVM_EXPERIMENTAL_TARGETS_TO_BUILD})
list(REMOVE_DUPLICATES present)
set(absent "// Generated: targets that latile-portable is without.\n")
foreach(target ${present})
  if(NOT target MATCHES "^(X86|NVPTX|AMDGPU)$")
    foreach(part Target TargetInfo TargetMC AsmParser AsmPrinter)
      string(APPEND absent "void LLVMInitialize${target}${part}(void) {}\n")
    endforeach()
  endif()
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/absent_targets.c CONTENT "${absent}")
llvm_map_components_to_libnames(llvm_archives core support passes lto dtlto option x86codegen x86asmparser x86desc x86info
  nvptxcodegen nvptxdesc nvptxinfo amdgpucodegen amdgpudesc amdgpuinfo amdgpuasmparser amdgpuutils)

set(portable_parts latile_tool latile_meaning latile_interpreter latile_compiler latile_version latile_emit
  latile_passes latile_simt_passes latile_host latile_llvm latile_gpu latile_nvptx latile_amdgcn latile_nvrtc latile_emulate
  latile_simt latile_dialect latile_layout latile_targets
  latile_emulated latile_emulator latile_runtime latile_records latile_ops latile_dsl latile_operator_info)
foreach(part ${portable_parts})
  list(APPEND portable_archives $<TARGET_FILE:${part}>)
endforeach()
find_library(LATILE_BOOST_CONTEXT_ARCHIVE libboost_context.a REQUIRED)
function(latile_portable_program target output source)
  add_executable(${target} EXCLUDE_FROM_ALL ${source} ${PROJECT_SOURCE_DIR}/cmake/no_polly.cpp
    ${PROJECT_BINARY_DIR}/absent_targets.c)
  target_include_directories(${target} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${output})
  add_dependencies(${target} ${portable_parts})
  target_link_libraries(${target} PRIVATE latile_flags -Wl,--start-group ${portable_archives} -Wl,--end-group
    ${LLVM_LIBRARY_DIR}/liblldELF.a ${LLVM_LIBRARY_DIR}/liblldCommon.a ${mlir_archives} ${llvm_archives}
    ${LATILE_BOOST_CONTEXT_ARCHIVE} Threads::Threads ${CMAKE_DL_LIBS})
  target_link_options(${target} PRIVATE -Wl,--gc-sections -static-libstdc++ -static-libgcc -Wl,--strip-all)
endfunction()
latile_portable_program(latile_portable latile-portable ${PROJECT_SOURCE_DIR}/tools/latile/Main.cpp)
# The same with the operator of examples/extern_kernel.
latile_portable_program(latile_portable_extern extern-kernel-portable
  ${PROJECT_SOURCE_DIR}/examples/extern_kernel/gated_output.cpp)
