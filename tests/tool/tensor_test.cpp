#include "tools/latile/HostTensor.h"
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

using namespace latile;

namespace {

double through(ElementType type, double x) {
  std::byte memory[8];
  store_element(memory, type, x);
  return load_element(memory, type);
}

}  // namespace

TEST_CASE("float16 and bfloat16 keep their own values and round to nearest even") {
  for (int bits = 0; bits < 65536; ++bits)
    for (ElementType type : {ElementType::f16, ElementType::bf16}) {
      const auto word = static_cast<std::uint16_t>(bits);
      const double x = load_element(&word, type);
      if (std::isnan(x)) continue;
      std::uint16_t back = 0;
      store_element(&back, type, x);
      REQUIRE(back == word);
    }
  CHECK(through(ElementType::f16, 1 + 0x1p-11) == 1);
  CHECK(through(ElementType::f16, 1 + 3 * 0x1p-11) == 1 + 0x1p-9);
  CHECK(through(ElementType::f16, 65519) == 65504);
  CHECK(through(ElementType::f16, 65520) == std::numeric_limits<double>::infinity());
  CHECK(through(ElementType::f16, 0x1p-25) == 0);
  CHECK(through(ElementType::f16, 0x1.8p-25) == 0x1p-24);
  CHECK(through(ElementType::bf16, 1 + 0x1p-8) == 1);
  CHECK(through(ElementType::bf16, 1 + 0x1p-8 + 0x1p-40) == 1 + 0x1p-7);  // one rounding, not two
  CHECK(through(ElementType::bf16, -1 - 3 * 0x1p-8 + 0x1p-40) == -1 - 0x1p-7);
  CHECK(through(ElementType::bf16, 1e39) == std::numeric_limits<double>::infinity());
  for (ElementType type : {ElementType::f16, ElementType::bf16, ElementType::f32}) {
    CHECK(std::isnan(through(type, NAN)));
    CHECK(through(type, -INFINITY) == -INFINITY);
    CHECK(std::signbit(through(type, -0.0)));
  }
}

TEST_CASE("offsets follow strides; poison is NaN and -1") {
  HostTensor t("t", ElementType::f32, {2, 3}, {10, 2});
  CHECK(t.bytes.size() == (10 + 4 + 1) * 4);
  CHECK(t.offset(4) == 12);
  t.poison();
  CHECK(std::isnan(t.get(5)));
  for (ElementType type : {ElementType::f16, ElementType::bf16}) {
    HostTensor h("h", type, {1});
    h.poison();
    CHECK(std::isnan(h.get(0)));
  }
  HostTensor i("i", ElementType::i32, {1});
  i.poison();
  CHECK(i.get(0) == -1);
}
