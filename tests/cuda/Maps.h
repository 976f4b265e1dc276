// Where a warp's lanes hold the elements of matrices in NVIDIA's instructions, as formulas of lane and element. The
// emulator's tests and fragments.cu, which runs on a GPU, compare with these same formulas.
#pragma once

namespace latile::maps {

struct At {
  int row, column;
};

/// Operand A of mma.sync, 16 bits: element e is half e % 2 of register e / 2. m16k16 has 8 elements, m16k8 the first 4.
inline At a_16(int lane, int e) {
  int r = e >> 1;
  return {(lane >> 2) + 8 * (r & 1), 2 * (lane & 3) + 8 * (r >> 1) + (e & 1)};
}
/// Operand B, 16 bits; the contraction is its row. k16n8 has 4 elements, k8n8 the first 2.
inline At b_16(int lane, int e) { return {2 * (lane & 3) + 8 * (e >> 1) + (e & 1), lane >> 2}; }
/// Accumulators m16n8, 4 float32.
inline At accumulator(int lane, int e) { return {(lane >> 2) + 8 * (e >> 1), 2 * (lane & 3) + (e & 1)}; }
/// Operand A, tf32: m16k8 has 4 elements, m16k4 the first 2.
inline At a_tf32(int lane, int e) { return {(lane >> 2) + 8 * (e & 1), (lane & 3) + 4 * (e >> 1)}; }
/// Operand B, tf32: k8n8 has 2 elements, k4n8 the first.
inline At b_tf32(int lane, int e) { return {(lane & 3) + 4 * e, lane >> 2}; }
/// ldmatrix and stmatrix: half h of the register for one matrix of 8 x 8 elements of 16 bits.
inline At matrix(int lane, int h, bool transposed) {
  int row = lane >> 2, column = 2 * (lane & 3) + h;
  return transposed ? At{column, row} : At{row, column};
}

enum class Shuffle { up, down, butterfly, index };
/// The lane that shfl.sync takes a value from; its own where the other is out of reach. `clamp` as in PTX.
inline int shuffle_source(Shuffle kind, int lane, int by, int clamp, bool& inside) {
  int fixed = clamp >> 8 & 31, last = (lane & fixed) | (clamp & 31 & ~fixed), from = lane;
  switch (kind) {
  case Shuffle::up: inside = (from = lane - by) >= last; break;
  case Shuffle::down: inside = (from = lane + by) <= last; break;
  case Shuffle::butterfly: inside = (from = lane ^ by) <= last; break;
  case Shuffle::index: inside = (from = (lane & fixed) | (by & ~fixed)) <= last; break;
  }
  return inside ? from : lane;
}

}  // namespace latile::maps
