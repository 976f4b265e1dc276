#include "compiler/passes/MinCut.h"
#include <doctest/doctest.h>

using latile::MinCut;

TEST_CASE("a minimum cut of a graph with two ways") {
  MinCut graph;
  int a = graph.add_node(), b = graph.add_node();
  graph.add_edge(MinCut::source, a, 3);
  graph.add_edge(MinCut::source, b, 2);
  graph.add_edge(a, b, 5);
  graph.add_edge(a, MinCut::sink, 2);
  graph.add_edge(b, MinCut::sink, 3);
  // Flow 5 fills both edges into the sink and both out of the source: the smallest side is the source alone.
  auto side = graph.source_side();
  CHECK(side[MinCut::source]);
  CHECK_FALSE(side[MinCut::sink]);
  CHECK_FALSE(side[a]);
  CHECK_FALSE(side[b]);
}

TEST_CASE("an unbounded edge is never cut") {
  MinCut graph;
  int needed = graph.add_node(), again = graph.add_node();
  graph.add_edge(MinCut::source, needed, MinCut::unbounded);
  graph.add_edge(needed, again, 10);
  graph.add_edge(again, MinCut::sink, 4);
  auto side = graph.source_side();
  CHECK(side[needed]);
  CHECK(side[again]);  // computing again is cheaper than storing
  MinCut other;
  needed = other.add_node(), again = other.add_node();
  other.add_edge(MinCut::source, needed, MinCut::unbounded);
  other.add_edge(needed, again, 10);
  other.add_edge(again, MinCut::sink, MinCut::unbounded);
  side = other.source_side();
  CHECK(side[needed]);
  CHECK_FALSE(side[again]);
}
