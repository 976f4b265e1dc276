#include "latile/table.h"
#include <algorithm>

using latile::Operator;
void linear_attn(Operator&);
void simple_gla(Operator&);
void gated_delta_rule(Operator&);

namespace latile {
namespace {

std::vector<OperatorRow>& rows() {
  static std::vector<OperatorRow> table{
      {"linear_attn", ::linear_attn, "linear attention, optionally normalised by the sum of keys", 0.001, 0.001},
      {"simple_gla", ::simple_gla, "linear attention with a decay for each head, per token or constant", 0.004, 0.005},
      {"gated_delta_rule", ::gated_delta_rule, "the delta rule with a decay for each head", 0.005, 0.005},
  };
  return table;
}

}  // namespace

const std::vector<OperatorRow>& operators() { return rows(); }

const OperatorRow* find_operator(std::string_view name) {
  auto it = std::find_if(rows().begin(), rows().end(), [&](const OperatorRow& r) { return r.name == name; });
  return it == rows().end() ? nullptr : &*it;
}

bool register_operator(const OperatorRow& row) {
  if (find_operator(row.name)) return false;
  rows().push_back(row);
  return true;
}

}  // namespace latile
