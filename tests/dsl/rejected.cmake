# A program that a compiler must reject at the line that ends in "// MISTAKE text".
# Usage: cmake -DSOURCE=… -DFILE=… -DCOMPILER=<c++> -P rejected.cmake
execute_process(COMMAND grep -n "// MISTAKE" ${FILE} OUTPUT_VARIABLE found COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "^[0-9]+" number "${found}")
string(REGEX MATCH "MISTAKE ([a-z]+)" word "${found}")
set(expected ${CMAKE_MATCH_1})
execute_process(COMMAND ${COMPILER} -std=c++20 -Wall -Werror -I${SOURCE}/include -fsyntax-only ${FILE}
                RESULT_VARIABLE status ERROR_VARIABLE text)
if(status EQUAL 0)
  message(FATAL_ERROR "${FILE} compiles")
endif()
if(NOT text MATCHES ":${number}:[0-9]+: error:[^\n]*${expected}")
  message(FATAL_ERROR "no error '${expected}' at line ${number}:\n${text}")
endif()
