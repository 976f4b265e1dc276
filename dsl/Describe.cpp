#include "dsl/Describe.h"
#include <algorithm>

namespace latile {
namespace {

std::vector<std::string> values(const OptionInfo& o) {
  switch (o.kind) {
  case OptionInfo::Kind::flag: return {"false", "true"};
  case OptionInfo::Kind::choice: return o.values;
  case OptionInfo::Kind::integer: return {std::to_string(o.lo), std::to_string(o.hi)};
  case OptionInfo::Kind::number: return {"-1", "1"};  // definitions ask whether it is set, at most for its sign
  }
  return {};
}

template <class T> bool add(std::vector<T>& all, const T& one) {
  if (std::any_of(all.begin(), all.end(), [&](const T& t) { return t.name == one.name; })) return false;
  all.push_back(one);
  return true;
}

OperatorInfo run(const OperatorRow& row, const Config& config) {
  Operator op{std::string(row.name), config};
  row.define(op);
  return op.info();
}

}  // namespace

OperatorInfo describe(const OperatorRow& row, const Config& config, std::vector<Diagnostic>& mistakes) {
  Operator op{std::string(row.name), config};
  row.define(op);
  op.finish();
  mistakes.insert(mistakes.end(), op.diagnostics().begin(), op.diagnostics().end());
  return op.info();
}

OperatorInfo discover(const OperatorRow& row) {
  OperatorInfo all = run(row, {});
  for (std::size_t i = 0; i < all.options.size(); ++i) {  // grows: an option may ask for others
    OptionInfo option = all.options[i];
    for (auto& value : values(option)) {
      OperatorInfo one = run(row, {{{option.name, value}}, {}});
      for (auto& o : one.options) add(all.options, o);
      for (auto& t : one.tensors) add(all.tensors, t);
      for (auto& d : one.dims) add(all.dims, d);
      for (auto& s : one.scalars) add(all.scalars, s);
    }
  }
  return all;
}

}  // namespace latile
