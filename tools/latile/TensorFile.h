// A tensor's place on disk as the command line names it: FILE.npy, FILE.safetensors or FILE.safetensors:NAME.
#pragma once
#include "tools/latile/HostTensor.h"
#include <string>
#include <utility>
#include <vector>

namespace latile {

struct TensorFile {
  std::string path;
  std::string name;  ///< inside a .safetensors file; empty: the file is .npy
};

/// `fallback` is the name inside a .safetensors file that is given without one. Throws UserError.
TensorFile tensor_file(const std::string& text, const std::string& fallback);

/// bfloat_words: uint16 in .npy files are the bits of bfloat16 numbers. Throws UserError.
HostTensor read_tensor(const TensorFile&, bool bfloat_words);

/// Throws UserError when two would be written to one place: one .npy file, or one name of a .safetensors file; or when
/// a path is asked for in both formats.
void check_distinct(const std::vector<TensorFile>&);

/// Writes all, the tensors of one .safetensors file together; an existing file is replaced as a whole. No file is
/// touched unless all can be written. Throws UserError.
void write_tensors(const std::vector<std::pair<TensorFile, HostTensor>>&, bool bfloat_words);

}  // namespace latile
