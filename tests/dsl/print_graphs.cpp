// Prints the recorded graphs of all operators and settings, to compare host compilers.
#include "dsl/Describe.h"
#include <cstdio>

int main() {
  using namespace latile;
  for (auto& row : operators()) {
    auto print = [&](const Config& c) {
      Operator op{std::string(row.name), c};
      row.define(op);
      std::fputs(op.text().c_str(), stdout);
    };
    print({});
    OperatorInfo all = discover(row);
    for (auto& option : all.options)
      for (auto& value : option.values) print({{{option.name, value}}, {}});
    for (auto& absent : all.tensors) {
      Config c;
      for (auto& t : all.tensors)
        if (t.name != absent.name) c.bound.push_back(t.name);
      if (absent.optional) print(c);
    }
  }
}
