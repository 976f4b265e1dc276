# Writes the definition of compiler/Version.h: a digest of everything that shapes compiled code, so that a cache never
# serves the output of another compiler. Run at build time:
# cmake -DSOURCE=… -DOUT=… -DVERSION=… -DLLVM=… -P version.cmake
file(GLOB_RECURSE files ${SOURCE}/codegen/*.cpp ${SOURCE}/codegen/*.h ${SOURCE}/compiler/*.cpp ${SOURCE}/compiler/*.h
     ${SOURCE}/dialect/*.cpp ${SOURCE}/dialect/*.td ${SOURCE}/runtime/Artifact.h)
list(SORT files)
set(all "")
foreach(f ${files})
  file(SHA256 ${f} digest)
  string(APPEND all ${digest})
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)
file(WRITE ${OUT}.new "// Generated.\n#include \"compiler/Version.h\"\nnamespace latile {\nconst char* const version_text = \"latile ${VERSION} ${digest}, LLVM ${LLVM}\";\n}\n")
file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
