// Reading and writing of NumPy's .npy files, strictly: what is not understood is refused by name.
#pragma once
#include "tools/latile/HostTensor.h"
#include <string>

namespace latile {

/// Reads a file of format 1.0, 2.0 or 3.0 in little-endian float32, float16, int32, int64 or bfloat16 (as '<V2', or
/// as '<u2' when `bfloat_words` says so). A file in Fortran order gets its strides, not a copy. Throws UserError that
/// names the file and what is wrong with it: no such file, no .npy, truncated, trailing bytes, other element type.
HostTensor read_npy(const std::string& path, bool bfloat_words);

/// The content of a file of format 1.0 in C order. bfloat16 goes out as '<u2' when `bfloat_words`, else as '<V2'.
std::string npy_content(const HostTensor&, bool bfloat_words);

/// Writes that, as write_file (tools/latile/File.h) does. Throws UserError.
void write_npy(const std::string& path, const HostTensor&, bool bfloat_words);

}  // namespace latile
