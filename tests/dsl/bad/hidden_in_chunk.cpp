#include "latile/dsl.h"
using namespace latile;

void hidden_in_chunk(Operator& op) {
  auto [H] = op.heads("H");
  auto [K] = op.dims("K");
  auto k = op.sequence("k", {H, K});
  auto o = op.output("o", {H, K});
  auto S = op.carry("S", {H, K});
  auto start = op.hidden("start", {H, K});
  op.chunk([&](Chunk) {
    o = k + start;  // MISTAKE hidden carry 'start' is read outside the reference: it exists there alone
    S = S + colsum(k);
    start = colsum(k);  // MISTAKE hidden carry 'start' is assigned outside the reference: it exists there alone
  });
}
