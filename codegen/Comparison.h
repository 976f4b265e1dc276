// Integer comparisons of arith in LLVM IR.
#pragma once
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/IR/InstrTypes.h"
#include <optional>

namespace latile {

/// The signed comparison of LLVM for one of arith; none for the unsigned ones.
inline std::optional<llvm::CmpInst::Predicate> signed_comparison(mlir::arith::CmpIPredicate predicate) {
  using P = mlir::arith::CmpIPredicate;
  switch (predicate) {
  case P::eq: return llvm::CmpInst::ICMP_EQ;
  case P::ne: return llvm::CmpInst::ICMP_NE;
  case P::slt: return llvm::CmpInst::ICMP_SLT;
  case P::sle: return llvm::CmpInst::ICMP_SLE;
  case P::sgt: return llvm::CmpInst::ICMP_SGT;
  case P::sge: return llvm::CmpInst::ICMP_SGE;
  default: return std::nullopt;
  }
}

}  // namespace latile
