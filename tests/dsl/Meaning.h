// An operator's bodies, run by the interpreter in float64, against a token loop written by hand.
#pragma once
#include "latile/table.h"
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace latile::meaning {

using Numbers = std::vector<double>;
using Options = std::vector<std::pair<std::string, std::string>>;

/// One sequence and one head of the finest axis, as an oracle sees them. Tensors of a coarser axis are read at the
/// head's group.
class Head {
public:
  std::int64_t tokens = 0;
  double scale = 1;  ///< the operator's run-time scalar "scale"
  bool has(const std::string& tensor) const;
  std::int64_t dim(const std::string&) const;
  /// First entry of a sequence's or an output's row (row = token * rate), of a parameter, of a carry (which begins as
  /// the initial state and is left as the final one).
  double* row(const std::string& tensor, std::int64_t row) const;
  double* param(const std::string& tensor) const;
  double* carry(const std::string& name) const;
  /// exp of a gate, as the language bounds it.
  static double decay(double log_gate);

  struct Place {
    Numbers* values;
    std::vector<std::int64_t> shape;
    std::int64_t inner, head;  ///< entries behind the head axis; head number or -1 where there is none
  };
  std::map<std::string, Place> places;
  std::map<std::string, std::int64_t> dims;
  std::int64_t sequence = 0;
};
using Oracle = std::function<void(const Head&)>;

struct Setting {
  Options options;
  std::vector<std::string> absent;  ///< optional tensors left out
  std::map<std::string, std::int64_t> dims{{"H", 2}, {"HV", 4}, {"HQ", 4}, {"K", 8}, {"V", 5}, {"M", 6}, {"D", 7}};
  /// Values of a tensor where they matter: drawn by default as gates from 0 to −∞, parameters in (−½, 0), factors of
  /// a head in (0, 1), anything else normal.
  std::map<std::string, std::function<double(std::mt19937_64&)>> draw;
  double recurrent_bound = 1e-13, chunk_bound = 1e-12;
};

/// Reference and chunk body, with every count of valid rows of a chunk of 16 and several chunk lengths.
void compare(const std::string& op, const Oracle&, const Setting& = {});

}  // namespace latile::meaning
