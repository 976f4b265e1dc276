// Runs code over a grid.
#pragma once
#include "compiler/interpreter/Instruction.h"
#include "compiler/interpreter/Memory.h"
#include <map>

namespace latile::interpreter {

/// The row ranges of a run.
class Sequences {
public:
  struct Range {
    std::int64_t batch, begin, end;
  };
  std::vector<Range> ranges;

  std::int64_t count() const { return static_cast<std::int64_t>(ranges.size()); }
  /// Numbers of the first chunk of each sequence, and the number of chunks at the end. Not for use while running
  /// with a size that `prepare` has not seen.
  const std::vector<std::int64_t>& chunks(std::int64_t size) const { return chunks_.at(size); }
  void prepare(std::int64_t size);

private:
  std::map<std::int64_t, std::vector<std::int64_t>> chunks_;
};

/// What a launch binds to the arguments of a kernel, by their number (the grid's indices not counted).
struct Argument {
  Memory* memory = nullptr;
  double scalar = 0;
};

struct Launch {
  const Code& code;
  const std::vector<Argument>& arguments;
  const Sequences& sequences;
  std::vector<std::int64_t> grid;  ///< extent of each axis, the last fastest
  std::int64_t heads;              ///< on the finest axis
  std::uint32_t number;            ///< counted from 1
  int threads;
};

void run(const Launch& launch, Report& report);

}  // namespace latile::interpreter
