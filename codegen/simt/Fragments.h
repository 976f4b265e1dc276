// Matrix instructions as layouts of their operands and accumulator in one warp.
#pragma once
#include "codegen/simt/Layout.h"

namespace latile::simt {

/// Types of the operands of products. Accumulators are float32.
enum class Operand : std::uint8_t { f16, bf16, tf32, f32 };

/// An accumulator [M,N] is operand A of a product with the same rows, or operand B of one with the same columns, in the
/// registers where it is.
enum class FreeOperand : std::uint8_t { none, a, b };

/// D[m,n] = A[m,k] · B[k,n] + C[m,n] by one warp, in one instruction or a few.
struct MatrixInstruction {
  std::string name;  ///< "mma.sync.m16n8k16.bf16"
  Operand operand = Operand::bf16;
  int m = 0, n = 0, k = 0;
  Layout a, b, c;  ///< of [m,k], [k,n], [m,n]; a lane's registers in the order the instruction takes them, two 16-bit
                   ///< elements a word
};

/// A row of a target's table, the layouts as text; aborts where a text is none.
MatrixInstruction matrix_instruction(std::string name, Operand, int m, int n, int k, std::string_view a,
                                     std::string_view b, std::string_view c);

/// How tensors of one type are multiplied.
struct MatrixProduct {
  Operand type;  ///< f16, bf16 or f32
  MatrixInstruction instruction;
  /// The instruction's layouts with the terms in the order in which accumulators hold them, where `instruction` has
  /// another: for products whose free operand is in registers.
  std::optional<MatrixInstruction> chained;
  /// An operand is the sum of so many of the instruction's type, the largest first; products of parts i and j with
  /// i + j < parts are added up, the smallest first. What is lost is below 2^-21 of a term.
  int parts = 1;
};

/// How the warps of a block share a product: `rows` × `columns` of them, rows fastest.
struct WarpGrid {
  int rows = 1;
  int columns = 1;
};

/// Layouts of a product [M,K]·[K,N] on a grid of warps: M and N are padded to what the grid covers, K to the
/// instruction's. Each warp has a rectangle of M/rows × N/columns in one piece; A is replicated over the columns of the
/// grid, B over its rows.
struct ProductLayouts {
  Layout a, b, c;
};
ProductLayouts product_layouts(const MatrixInstruction&, WarpGrid, int M, int N, int K);

/// One place of a fragment in a larger layout: the element (0,0) of the fragment and the registers, in the fragment's
/// order, that hold it. Warp 0 stands for all: the place of other warps differs by at(0, 0, warp).
struct FragmentPlace {
  Place place;
  std::vector<int> registers;
};
/// Takes a layout apart into fragments, columns fastest; nothing where it is not made of them.
std::optional<std::vector<FragmentPlace>> fragments_of(const Layout& whole, const Layout& fragment);

}  // namespace latile::simt
