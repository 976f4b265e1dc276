// Rewrites device code so that every access, exchange and barrier goes through the emulator. Internal.
#pragma once
#include "codegen/emulator/Meanings.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include <map>
#include <string>
#include <vector>

namespace latile::emulator {

using Ir = llvm::Value*;

class Instrumenter {
public:
  explicit Instrumenter(llvm::Module& module) : module_(module), b_(module.getContext()) {}

  /// Leaves a module for a CPU, without a data layout, that exports a function for each kernel.
  void run();
  /// Why the module cannot be emulated; empty: it can.
  const std::string& failure() const { return failure_; }

private:
  void check_globals();
  void kernel(llvm::Function&);
  llvm::Function* take_body(llvm::Function&);
  void written_parameters(llvm::Function&);
  void instruction(llvm::Instruction&);
  void access(llvm::Instruction&, Ir pointer, llvm::Type*, llvm::Align, bool write);
  void call(llvm::CallInst&);
  void move_bytes(llvm::MemIntrinsic&);
  Ir meaning_of(llvm::CallInst&, const Meaning&);
  void collective(llvm::CallInst&, const Meaning&);
  Ir elementwise(llvm::CallInst&, const Meaning&);
  Ir arithmetic(llvm::CallInst&, const Meaning&);
  void describe(llvm::Function* entry, unsigned parameters, unsigned warp_size);

  // Narrow.cpp: bfloat16, which not every CPU has
  bool narrow(llvm::Instruction&);
  void words_for_bf16(llvm::Function&);
  Ir to_bf16(Ir);  ///< float to nearest
  Ir from_bf16(Ir);
  Ir to_tf32(Ir);

  Ir lane_field(std::size_t offset);
  Ir hook(Hook);
  llvm::CallInst* call_hook(Hook, llvm::Type* result, llvm::ArrayRef<Ir>);
  llvm::Constant* call_site(llvm::Instruction&, Collective, unsigned variant);
  llvm::GlobalVariable* constant(llvm::Constant*, const char* name);
  std::uint32_t location(const llvm::Instruction&);
  Ir where(const llvm::Instruction& i) { return b_.getInt32(location(i)); }
  Ir shape(std::uint64_t bytes, std::uint64_t align) {
    return b_.getInt32(static_cast<std::uint32_t>(bytes | align << 16));
  }
  void fail(const llvm::Instruction&, const llvm::Twine&);
  void fail(const llvm::Twine&);

  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  std::string failure_;

  // Of the kernel at hand
  std::string kernel_name_;
  llvm::Function* function_ = nullptr;
  Ir lane_ = nullptr;
  std::map<std::size_t, Ir> fields_;
  std::map<Hook, Ir> hooks_;
  llvm::AllocaInst *in_ = nullptr, *out_ = nullptr;  ///< operands and results of the lane's collectives
  std::map<std::string, std::uint32_t> location_numbers_;
  std::vector<std::string> locations_;
  std::vector<std::uint8_t> written_;
  bool all_written_ = false;
  unsigned granule_ = 4;
};

}  // namespace latile::emulator
