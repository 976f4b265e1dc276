#include "runtime/Program.h"
#include <algorithm>

namespace latile::runtime {
namespace {

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

/// Arithmetic on sizes that may not fit: wide, and refused at the end.
using Wide = unsigned __int128;
Wide round_up_wide(Wide value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

/// A dimension that kernels may name. False: there is none.
bool count(const Signature& signature, const std::string& name, Count& found) {
  if (name == "chunks")
    found.chunks = true;
  else if (name == "B")
    found.extent = signature.batch;
  else if (name == "T")
    found.extent = signature.rows;
  else if (name == "N")
    found.extent = signature.sequences;
  else if (name == "slots" && signature.needs_slots)
    found.extent = signature.slots;
  else {
    found.extent.name = name;
    found.extent.dim = signature.dim(name);
    return found.extent.dim >= 0;
  }
  return true;
}

}  // namespace

static bool same_arguments(const KernelFacts& a, const KernelFacts& b) {
  return a.dims == b.dims && a.scalars == b.scalars && a.grid == b.grid && a.chunk == b.chunk &&
         std::ranges::equal(a.views, b.views, [](const ViewArgument& x, const ViewArgument& y) {
           return x.tensor == y.tensor && x.rank == y.rank;
         });
}

Program Program::bind(const Code& code, const Signature& signature, int threads, std::string& why) {
  Program program;
  program.on_device = code.device != nullptr;
  program.threads = program.on_device ? 1 : threads;
  const auto wrong = [&](std::string text) {
    why = std::move(text);
    return Program();
  };
  const auto set_chunk = [&](std::int64_t chunk) {
    if (chunk <= 0) return false;
    if (program.chunk == 0) program.chunk = chunk;
    return program.chunk == chunk;
  };
  for (const WorkspaceTensor& tensor : code.artifact.workspace) {
    BoundWorkspace bound{{}, tensor.rows, tensor.cols, tensor.element_bytes, !tensor.axis.empty()};
    const bool axis = tensor.axis.empty() || (count(signature, tensor.axis, bound.heads) && !bound.heads.chunks);
    if (!axis || tensor.rows <= 0 || tensor.cols <= 0 || tensor.element_bytes <= 0 || !set_chunk(tensor.chunk))
      return wrong(fmt::format("workspace tensor {} has a shape that no run has", tensor.name));
    program.workspace.push_back(bound);
  }
  std::size_t block = round_up(code.artifact.kernels.size() * sizeof(Launch), kLine);
  const KernelFacts* wide = nullptr;
  for (const KernelFacts& facts : code.artifact.kernels) {
    BoundKernel kernel;
    kernel.symbol = facts.symbol;
    if (program.on_device) {
      if (facts.threads < 1 || facts.threads > 1024 || facts.slices < 1)
        return wrong(
            fmt::format("kernel {} has {} threads a block and {} slices", facts.symbol, facts.threads, facts.slices));
      if (facts.narrow) {
        if (program.kernels.empty() || program.kernels.back().narrow)
          return wrong(fmt::format("kernel {} stands for one that is not there", facts.symbol));
        if (!same_arguments(facts, *wide))
          return wrong(fmt::format("kernel {} has other arguments than {}", facts.symbol, wide->symbol));
        program.kernels.back().narrow = {code.device_module->kernel(facts), facts.threads, facts.slices,
                                         facts.shared_bytes, facts.symbol};
        continue;
      }
      wide = &facts;
      kernel.on_device = code.device_module->kernel(facts);
      kernel.threads = facts.threads, kernel.slices = facts.slices, kernel.shared_bytes = facts.shared_bytes;
      kernel.arena_bytes = facts.arena_bytes;
    } else {
      kernel.entry = reinterpret_cast<HostKernel>(code.module->symbol(facts.symbol));
      if (kernel.entry == nullptr) return wrong(fmt::format("there is no kernel {} in the code", facts.symbol));
    }
    for (const std::string& axis : facts.grid) {
      if (!count(signature, axis, kernel.grid.emplace_back()))
        return wrong(fmt::format("kernel {} has a grid over {}, which the plan does not know", facts.symbol, axis));
      if (!facts.spans.empty()) {
        const std::size_t at = kernel.grid.size() - 1;
        const std::int64_t span = at < facts.spans.size() ? facts.spans[at] : 0;
        if (span < 1) return wrong(fmt::format("kernel {} has items of {} along {}", facts.symbol, span, axis));
        kernel.grid.back().span = span;
      }
      if (kernel.grid.back().chunks && !set_chunk(facts.chunk))
        return wrong(fmt::format("kernel {} has another chunk length than the rest", facts.symbol));
    }
    for (const ViewArgument& view : facts.views) {
      constexpr std::string_view prefix = "workspace.";
      int index = signature.tensor(view.tensor), rank = 4;
      if (index >= 0) {
        rank = signature.tensors[static_cast<std::size_t>(index)].rank();
      } else if (view.tensor.starts_with(prefix)) {
        const auto& all = code.artifact.workspace;
        const auto found = std::find_if(all.begin(), all.end(), [&](const WorkspaceTensor& tensor) {
          return view.tensor.compare(prefix.size(), std::string::npos, tensor.name) == 0;
        });
        if (found == all.end()) return wrong(fmt::format("kernel {} reads an unknown {}", facts.symbol, view.tensor));
        index = ~static_cast<int>(found - all.begin());
        if (found->axis.empty()) rank = 3;
      } else {
        return wrong(fmt::format("kernel {} takes tensor {}, which is not bound", facts.symbol, view.tensor));
      }
      if (rank != view.rank)
        return wrong(
            fmt::format("kernel {} takes {} at rank {}, it has {}", facts.symbol, view.tensor, view.rank, rank));
      kernel.views.push_back(index);
      kernel.integers += static_cast<std::size_t>(rank);
    }
    for (const std::string& dim : facts.dims) {
      if (!count(signature, dim, kernel.dims.emplace_back()) || (dim == "chunks" && !set_chunk(facts.chunk)))
        return wrong(fmt::format("kernel {} reads dimension {}, which the plan does not know", facts.symbol, dim));
      ++kernel.integers;
    }
    for (const std::string& scalar : facts.scalars) {
      const auto found = std::find_if(signature.scalars.begin(), signature.scalars.end(),
                                      [&](const Scalar& known) { return known.name == scalar; });
      if (found == signature.scalars.end())
        return wrong(fmt::format("kernel {} reads scalar {}, which the operator does not have", facts.symbol, scalar));
      kernel.scalars.push_back(static_cast<int>(found - signature.scalars.begin()));
    }
    kernel.sequences_first =
        !program.on_device && signature.ragged() && !facts.grid.empty() && facts.grid.front() == "N";
    program.orders_sequences |= kernel.sequences_first;
    program.arena_bytes = std::max(program.arena_bytes, facts.arena_bytes);
    const std::size_t parameters = kernel.parameters();
    if (program.on_device && parameters > kMaxParameters)
      return wrong(
          fmt::format("kernel {} has {} parameters; a device takes {}", facts.symbol, parameters, kMaxParameters));
    block += parameters * sizeof(std::int64_t);
    program.kernels.push_back(std::move(kernel));
  }
  if (program.on_device && program.kernels.size() > kMaxLaunches)
    return wrong(
        fmt::format("there are {} kernels; a device plan has at most {}", program.kernels.size(), kMaxLaunches));
  program.launch_bytes = program.on_device ? 0 : round_up(block, kLine);
  return program;
}

std::int64_t Program::most_chunks(const Signature& signature, const std::int64_t* dims) const {
  if (chunk == 0) return 0;
  const Wide rows = static_cast<Wide>(signature.rows.at(dims)),
             sequences = static_cast<Wide>(signature.sequences.at(dims));
  const Wide length = static_cast<Wide>(chunk);
  // Each of N sequences rounds up on its own: at most C - 1 rows more. On a device chunk i of sequence n has the number
  // cu_seqlens[n] / C + n + i, which takes no sum over the sequences before and leaves some of T / C + N numbers free.
  const Wide ragged = on_device ? rows / length + sequences : (rows + sequences * (length - 1)) / length;
  const Wide chunks = signature.ragged() ? ragged : sequences * ((rows + length - 1) / length);
  if (chunks > static_cast<Wide>(INT64_MAX))
    fail(LATILE_BAD_SHAPE, "{}: the run would have more than 2^63 chunks at these dimensions", signature.op);
  return static_cast<std::int64_t>(chunks);
}

std::size_t Program::workspace_tensor_bytes(std::size_t index, const Sizes& sizes) const {
  const BoundWorkspace& tensor = workspace[index];
  Wide bytes = 1;
  for (std::int64_t factor : {sizes.chunks, tensor.heads.at(sizes), tensor.rows, tensor.cols, tensor.element_bytes}) {
    bytes *= static_cast<Wide>(factor);
    if (bytes > static_cast<Wide>(INT64_MAX)) return INT64_MAX;  // the sum in layout() refuses it
  }
  return static_cast<std::size_t>(round_up_wide(bytes, on_device ? kDeviceAlignment : kLine));
}

WorkspaceLayout Program::layout(const Signature& signature, const std::int64_t* dims) const {
  const Sizes sizes{dims, most_chunks(signature, dims)};
  const auto refuse_bytes = [&] {
    fail(LATILE_BAD_SHAPE, "{}: the workspace would have more than 2^63 bytes at these dimensions", signature.op);
  };
  WorkspaceLayout layout;
  Wide items = 1;
  for (const BoundKernel& kernel : kernels) {
    Wide of_kernel = 1;
    for (const Count& axis : kernel.grid) {
      of_kernel *= static_cast<Wide>(axis.at(sizes));
      if (of_kernel > static_cast<Wide>(INT64_MAX))
        fail(LATILE_BAD_SHAPE, "{}: the run would have more than 2^63 work items at these dimensions", signature.op);
    }
    if (on_device && of_kernel * static_cast<Wide>(kernel.slices) > static_cast<Wide>(kMaxBlocks))
      fail(LATILE_BAD_SHAPE,
           "{}: the run would have {} blocks at these dimensions; a device's grid has at most {}; "
           "split the batch",
           signature.op, static_cast<std::uint64_t>(of_kernel) * static_cast<std::uint64_t>(kernel.slices), kMaxBlocks);
    if (kernel.arena_bytes != 0 && on_device)
      layout.block_arenas =
          std::max(layout.block_arenas, kernel.launched(static_cast<std::int64_t>(of_kernel) * kernel.slices));
    items = std::max(items, of_kernel);
  }
  layout.parts = static_cast<int>(std::min(items, static_cast<Wide>(threads)));
  layout.arena_stride = round_up(arena_bytes, kPage);
  if (on_device) {
    Wide total = 0;
    for (std::size_t i = 0; i < workspace.size(); ++i) total += workspace_tensor_bytes(i, sizes);
    layout.arenas = static_cast<std::size_t>(std::min(total, static_cast<Wide>(INT64_MAX)));
    total += static_cast<Wide>(layout.block_arenas) * layout.arena_stride;
    if (total > static_cast<Wide>(INT64_MAX)) refuse_bytes();
    layout.total = static_cast<std::size_t>(total);
    return layout;
  }
  Wide total = launch_bytes;
  std::int64_t slot_uses = orders_sequences ? signature.sequences.at(dims) : 0;
  for (const CarryTensors& carry : signature.carries)
    slot_uses = std::max(slot_uses, signature.written_slots(carry, dims));
  total += static_cast<Wide>(slot_uses) * sizeof(SlotUse);
  total = round_up_wide(total, kLine);
  layout.tensors = static_cast<std::size_t>(total);
  for (std::size_t i = 0; i < workspace.size(); ++i) total += workspace_tensor_bytes(i, sizes);
  total = round_up_wide(total, kPage);
  layout.arenas = static_cast<std::size_t>(total);
  total += static_cast<Wide>(layout.parts) * layout.arena_stride;
  // The pointer need not be aligned to a page; the arenas are.
  total += kPage - kWorkspaceAlignment;
  if (total > static_cast<Wide>(INT64_MAX)) refuse_bytes();
  layout.total = static_cast<std::size_t>(total);
  return layout;
}

}  // namespace latile::runtime
