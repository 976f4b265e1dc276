// Minimum s-t cut of a small directed graph.
#pragma once
#include <cstdint>
#include <vector>

namespace latile {

class MinCut {
public:
  static constexpr std::int64_t unbounded = std::int64_t{1} << 50;
  static constexpr int source = 0, sink = 1;

  /// A new node's number; source and sink exist from the start.
  int add_node();
  void add_edge(int from, int to, std::int64_t capacity);
  /// For each node whether it is on the source's side of a minimum cut, the one with the fewest nodes there.
  std::vector<bool> source_side();

private:
  struct Edge {
    int to;
    std::int64_t left;
  };
  std::vector<int> path_to_sink(std::vector<bool>& reached) const;

  std::vector<Edge> edges_;  // edge 2i and its reverse 2i + 1
  std::vector<std::vector<int>> leaving_{{}, {}};
};

}  // namespace latile
