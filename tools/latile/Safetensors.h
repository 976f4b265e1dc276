// Reading and writing of .safetensors files, strictly: a file that breaks the format anywhere is refused by name, also
// when the tensor that is wanted lies elsewhere in it.
#pragma once
#include "tools/latile/HostTensor.h"
#include <string>
#include <utility>
#include <vector>

namespace latile {

/// The names of a file's tensors, sorted. Throws UserError as read_safetensors does.
std::vector<std::string> safetensors_names(const std::string& path);

/// Reads one tensor of float32, float16, bfloat16, int32 or int64; tensors of other types may lie beside it. Only the
/// header and that tensor are read. Throws UserError that names the file and what is wrong with it: no such file, not
/// this format, truncated, a header over 100 MB, JSON that is damaged or has a key twice, an unknown type, a shape that
/// its bytes don't fit, tensors that overlap, bytes that belong to none, no such tensor (with the nearest names).
HostTensor read_safetensors(const std::string& path, const std::string& name);

/// The content of a file with these tensors: dense, outermost axis first, each aligned to its element. Names are
/// distinct. The same tensors in any order give the same bytes.
std::string safetensors_content(std::vector<std::pair<std::string, const HostTensor*>> tensors);

}  // namespace latile
