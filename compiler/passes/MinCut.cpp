#include "compiler/passes/MinCut.h"
#include <algorithm>
#include <deque>

namespace latile {

int MinCut::add_node() {
  leaving_.emplace_back();
  return static_cast<int>(leaving_.size()) - 1;
}

void MinCut::add_edge(int from, int to, std::int64_t capacity) {
  leaving_[from].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity});
  leaving_[to].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

// Edges of a shortest path with capacity left, from the sink backward; empty where there is none.
std::vector<int> MinCut::path_to_sink(std::vector<bool>& reached) const {
  std::vector<int> via(leaving_.size(), -1);
  reached.assign(leaving_.size(), false);
  reached[source] = true;
  std::deque<int> queue{source};
  while (!queue.empty() && !reached[sink]) {
    int node = queue.front();
    queue.pop_front();
    for (int edge : leaving_[node]) {
      if (edges_[edge].left <= 0 || reached[edges_[edge].to]) continue;
      reached[edges_[edge].to] = true;
      via[edges_[edge].to] = edge;
      queue.push_back(edges_[edge].to);
    }
  }
  std::vector<int> path;
  if (!reached[sink]) return path;
  for (int node = sink; node != source; node = edges_[via[node] ^ 1].to) path.push_back(via[node]);
  return path;
}

std::vector<bool> MinCut::source_side() {
  std::vector<bool> reached;
  for (auto path = path_to_sink(reached); !path.empty(); path = path_to_sink(reached)) {
    std::int64_t flow = unbounded;
    for (int edge : path) flow = std::min(flow, edges_[edge].left);
    for (int edge : path) edges_[edge].left -= flow, edges_[edge ^ 1].left += flow;
  }
  return reached;
}

}  // namespace latile
