#include "tests/interpreter/Operators.h"
#include <cmath>

namespace latile::test {
namespace {

ScanText frame(const DeltaShape& s, bool beta) {
  ScanText scan;
  scan.sequences = s.sequences;
  scan.chunk = s.chunk;
  scan.ratio = s.ratio;
  scan.axis = s.ratio == 1 ? "H" : "HV";
  scan.map = s.tiled ? "tiled" : "grouped";
  scan.reads = {{"q", "H", {s.K}, 1, s.io},
                {"k", "H", {s.K}, 1, s.io},
                {"v", scan.axis, {s.V}, 1, s.io},
                {"g", scan.axis, {}, 1, "f32"}};
  if (beta) scan.reads.push_back({"beta", scan.axis, {}, 1, "f32"});
  scan.scalars = {"scale"};
  scan.carries = {{"S", scan.axis, {s.K, s.V}}};
  scan.writes = {{"o", scan.axis, {s.V}, 1, s.io}};
  return scan;
}

}  // namespace

ScanText gated_delta_rule(const DeltaShape& s) {
  auto scan = frame(s, true);
  Body b;
  const std::int64_t C = s.chunk;
  Value q{"q", C, s.K, s.io}, k{"k", C, s.K, s.io}, v{"v", C, s.V, s.io}, g{"g", C, 1}, beta{"beta", C, 1},
      S{"S", s.K, s.V};
  Value scale{"scale", 1, 1};
  const auto io = [&](const Value& x) { return b.cast(x, s.io); };
  const auto wide = [&](const Value& x) { return b.cast(x, "f32"); };
  if (C == 1) {
    const auto k32 = wide(k);
    const auto decayed = b.mul(b.exp2(g), S);
    const auto u = b.mul(beta, b.sub(wide(v), b.dot(k32, decayed)));
    const auto next = b.add(decayed, b.dot(b.transpose(k32), u));
    const auto o = b.mul(scale, b.dot(wide(q), next));
    scan.yields = {io(o).name, next.name};
  } else {
    const auto G = b.same("tile.cumsum", g), last = b.row("last", G), e = b.exp2(G);
    const auto A = b.mul(b.mul(beta, b.dot(k, b.transpose(k))), b.decay(G, G, "strict"));
    const auto T = b.same("tile.inverse_unit_lower", A);
    const auto kS = b.dot(k, io(S));
    const auto v_new = b.dot(io(T), io(b.mul(beta, b.sub(wide(v), b.mul(e, kS)))));
    const auto scores = b.mul(b.dot(q, b.transpose(k)), b.decay(G, G, "lower"));
    const auto o = b.mul(scale, b.add(b.mul(e, b.dot(q, io(S))), b.dot(io(scores), io(v_new))));
    const auto keys = b.mul(b.exp2(b.sub(last, G)), wide(k));
    const auto next = b.add(b.mul(b.exp2(last), S), b.dot(b.transpose(io(keys)), io(v_new)));
    scan.yields = {io(o).name, next.name};
  }
  scan.body = b.text;
  return scan;
}

ScanText simple_gla(const DeltaShape& s) {
  auto scan = frame(s, false);
  Body b;
  const std::int64_t C = s.chunk;
  Value q{"q", C, s.K}, k{"k", C, s.K}, v{"v", C, s.V}, g{"g", C, 1}, S{"S", s.K, s.V}, scale{"scale", 1, 1};
  const auto G = b.same("tile.cumsum", g), last = b.row("last", G);
  const auto scores = b.mul(b.dot(q, b.transpose(k)), b.decay(G, G, "lower"));
  const auto o = b.mul(scale, b.add(b.mul(b.exp2(G), b.dot(q, S)), b.dot(scores, v)));
  const auto next = b.add(b.mul(b.exp2(last), S), b.dot(b.transpose(b.mul(b.exp2(b.sub(last, G)), k)), v));
  scan.yields = {o.name, next.name};
  scan.body = b.text;
  return scan;
}

ScanText linear_attention(const DeltaShape& s) {
  auto scan = frame(s, false);
  scan.reads.pop_back();
  scan.carries.push_back({"z", scan.axis, {s.K}});
  Body b;
  const std::int64_t C = s.chunk;
  Value q{"q", C, s.K}, k{"k", C, s.K}, v{"v", C, s.V}, S{"S", s.K, s.V}, z{"z", 1, s.K}, scale{"scale", 1, 1};
  const auto scores = b.mask("lower", b.dot(q, b.transpose(k)));
  const auto numerator = b.add(b.dot(q, S), b.dot(scores, v));
  const auto denominator = b.add(b.dot(q, b.transpose(z)), b.reduce("sum", 1, scores));
  const auto o = b.mul(scale, b.two("arith.divf", numerator, b.two("arith.maximumf", denominator, b.constant(1))));
  const auto S1 = b.add(S, b.dot(b.transpose(k), v)), z1 = b.add(z, b.reduce("sum", 0, k));
  scan.yields = {o.name, S1.name, z1.name};
  scan.body = b.text;
  return scan;
}

std::vector<Range> ranges(const Data& data) {
  std::vector<Range> made;
  const auto ragged = data.indices.find("cu_seqlens");
  for (std::int64_t n = 0; n < data.sequences; ++n)
    if (ragged == data.indices.end())
      made.push_back({n, 0, data.rows});
    else
      made.push_back({0, ragged->second[static_cast<std::size_t>(n)], ragged->second[static_cast<std::size_t>(n) + 1]});
  return made;
}

namespace {

template <class Loop> void for_each_head(const DeltaShape& s, Data& data, Loop loop) {
  const auto all = ranges(data);
  const auto slot = [&](const char* name, std::int64_t n) -> std::int64_t {
    const auto found = data.indices.find(name);
    return found == data.indices.end() ? n : found->second[static_cast<std::size_t>(n)];
  };
  for (std::int64_t n = 0; n < data.sequences; ++n)
    for (std::int64_t h = 0; h < data.heads; ++h)
      loop(all[static_cast<std::size_t>(n)], h, s.tiled ? h % (data.heads / s.ratio) : h / s.ratio,
           slot("S.initial_index", n), slot("S.final_index", n));
}

}  // namespace

void gated_delta_rule(const DeltaShape& s, Data& data, bool delta) {
  auto &q = data.arrays["q"], &k = data.arrays["k"], &v = data.arrays["v"], &g = data.arrays["g"];
  auto& beta = data.arrays["beta"];
  auto &o = data.arrays["o"], &start = data.arrays["S.initial"], &end = data.arrays["S.final"];
  const double scale = data.scalars["scale"];
  for_each_head(s, data, [&](Range range, std::int64_t h, std::int64_t hk, std::int64_t from, std::int64_t to) {
    std::vector<double> S(static_cast<std::size_t>(s.K * s.V), 0.0);
    const auto at = [&](std::int64_t i, std::int64_t j) -> double& { return S[static_cast<std::size_t>(i * s.V + j)]; };
    for (std::int64_t i = 0; i < s.K; ++i)
      for (std::int64_t j = 0; j < s.V; ++j) at(i, j) = from < 0 ? 0 : start({from, h, i, j});
    for (std::int64_t t = range.begin; t < range.end; ++t) {
      for (auto& x : S) x *= std::exp2(g({range.batch, t, h}));
      for (std::int64_t j = 0; j < s.V; ++j) {
        double seen = 0;
        for (std::int64_t i = 0; i < s.K; ++i) seen += k({range.batch, t, hk, i}) * at(i, j);
        const double u =
            delta ? beta({range.batch, t, h}) * (v({range.batch, t, h, j}) - seen) : v({range.batch, t, h, j});
        for (std::int64_t i = 0; i < s.K; ++i) at(i, j) += k({range.batch, t, hk, i}) * u;
        double sum = 0;
        for (std::int64_t i = 0; i < s.K; ++i) sum += q({range.batch, t, hk, i}) * at(i, j);
        o({range.batch, t, h, j}) = scale * sum;
      }
    }
    for (std::int64_t i = 0; i < s.K && to >= 0; ++i)
      for (std::int64_t j = 0; j < s.V; ++j) end({to, h, i, j}) = at(i, j);
  });
}

void linear_attention(const DeltaShape& s, Data& data) {
  auto &q = data.arrays["q"], &k = data.arrays["k"], &v = data.arrays["v"], &o = data.arrays["o"];
  for_each_head(s, data, [&](Range range, std::int64_t h, std::int64_t hk, std::int64_t from, std::int64_t to) {
    for (std::int64_t j = 0; j < s.V; ++j) {
      std::vector<double> S(static_cast<std::size_t>(s.K)), z(static_cast<std::size_t>(s.K));
      for (std::int64_t i = 0; i < s.K; ++i) {
        S[static_cast<std::size_t>(i)] = data.arrays["S.initial"]({from, h, i, j});
        z[static_cast<std::size_t>(i)] = data.arrays["z.initial"]({from, h, i});
      }
      for (std::int64_t t = range.begin; t < range.end; ++t) {
        double numerator = 0, denominator = 0;
        for (std::int64_t i = 0; i < s.K; ++i) {
          S[static_cast<std::size_t>(i)] += k({range.batch, t, hk, i}) * v({range.batch, t, h, j});
          z[static_cast<std::size_t>(i)] += k({range.batch, t, hk, i});
          numerator += q({range.batch, t, hk, i}) * S[static_cast<std::size_t>(i)];
          denominator += q({range.batch, t, hk, i}) * z[static_cast<std::size_t>(i)];
        }
        o({range.batch, t, h, j}) = data.scalars["scale"] * numerator / std::max(denominator, 1.0);
      }
      for (std::int64_t i = 0; i < s.K; ++i) {
        data.arrays["S.final"]({to, h, i, j}) = S[static_cast<std::size_t>(i)];
        data.arrays["z.final"]({to, h, i}) = z[static_cast<std::size_t>(i)];
      }
    }
  });
}

Data delta_data(const DeltaShape& s, std::int64_t heads, const std::vector<std::int64_t>& lengths, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  Data data;
  data.sequences = static_cast<std::int64_t>(lengths.size());
  data.heads = heads;
  data.scalars["scale"] = 0.37;
  std::int64_t batch = data.sequences, rows = lengths.empty() ? 0 : lengths[0];
  if (s.sequences != "dense") {
    std::vector<std::int32_t> ends{0};
    for (auto length : lengths) ends.push_back(ends.back() + static_cast<std::int32_t>(length));
    batch = 1, rows = ends.back();
    data.indices["cu_seqlens"] = ends;
  }
  data.rows = rows;
  auto& a = data.arrays;
  const double size = 1 / std::sqrt(static_cast<double>(s.K));
  a["q"] = Array::random({batch, rows, heads / s.ratio, s.K}, engine);
  a["k"] = Array::random({batch, rows, heads / s.ratio, s.K}, engine, -size, size);
  a["v"] = Array::random({batch, rows, heads, s.V}, engine);
  a["g"] = Array::random({batch, rows, heads}, engine, -1.5, 0);
  a["beta"] = Array::random({batch, rows, heads}, engine, 0, 2);
  a["o"] = Array({batch, rows, heads, s.V}, NAN);
  a["S.initial"] = Array::random({data.sequences, heads, s.K, s.V}, engine);
  a["S.final"] = Array({data.sequences, heads, s.K, s.V}, NAN);
  a["z.initial"] = Array::random({data.sequences, heads, s.K}, engine);
  a["z.final"] = Array({data.sequences, heads, s.K}, NAN);
  return data;
}

}  // namespace latile::test
