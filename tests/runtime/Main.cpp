#define DOCTEST_CONFIG_IMPLEMENT
#include "Toy.h"
#include <doctest/doctest.h>

int main(int argc, char** argv) {
  install_toy_compiler();
  return doctest::Context(argc, argv).run();
}
