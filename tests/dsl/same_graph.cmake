# Records all operators with two host compilers and compares the graphs.
# Usage: cmake -DSOURCE=… -DOUT=… -DFIRST=<program> -DCOMPILER=<c++> -P same_graph.cmake
file(GLOB sources ${SOURCE}/dsl/*.cpp ${SOURCE}/ops/*.cpp)
execute_process(COMMAND ${COMPILER} -std=c++20 -O0 -fno-exceptions -I${SOURCE} -I${SOURCE}/include ${sources}
                        ${SOURCE}/tests/dsl/print_graphs.cpp -o ${OUT} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${FIRST} OUTPUT_VARIABLE first COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${OUT} OUTPUT_VARIABLE second COMMAND_ERROR_IS_FATAL ANY)
string(LENGTH "${first}" length)
if(length LESS 1000 OR NOT first STREQUAL second)
  file(WRITE ${OUT}.first "${first}")
  file(WRITE ${OUT}.second "${second}")
  message(FATAL_ERROR "the recorded graphs differ: compare ${OUT}.first and ${OUT}.second")
endif()
message("${length} characters of graphs are equal")
