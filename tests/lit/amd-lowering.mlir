// RUN: lower_kernels %s gfx90a llvm | FileCheck %s --check-prefixes=LLVM,LLVM64
// RUN: lower_kernels %s gfx1201 llvm | FileCheck %s --check-prefixes=LLVM,LLVM32
// RUN: lower_kernels %s gfx90a asm | FileCheck %s --check-prefix=MFMA
// RUN: lower_kernels %s gfx1201 asm | FileCheck %s --check-prefix=WMMA
// RUN: latile compile gated_delta_rule --target gfx90a --emit asm --dtype bf16 | FileCheck %s --check-prefix=MFMA
// RUN: latile compile gated_delta_rule --target gfx1201 --emit asm --dtype bf16 | FileCheck %s --check-prefix=WMMA
// RUN: latile compile gated_delta_rule --target gfx90a --emit asm --dtype f32 | FileCheck %s --check-prefix=MFMA32
// RUN: latile compile gated_delta_rule --target gfx90a --emit object | llvm-readelf -h - | FileCheck %s --check-prefix=ELF
// RUN: latile compile gated_delta_rule --target gfx1201 --emit object | llvm-readelf -h - | FileCheck %s --check-prefix=ELF
// RUN: not latile compile gated_delta_rule --target gfx90a --emit ptx 2>&1 | FileCheck %s --check-prefix=PTX

// MFMA: v_mfma_f32_16x16x16{{_?}}bf16_1k
// MFMA: s_barrier
// MFMA32: v_mfma_f32_16x16x4{{_?}}f32
// WMMA: v_wmma_f32_16x16x16_bf16
// WMMA: s_barrier_signal
// ELF: Machine: {{.*}}AMDGPU
// PTX: gfx90a: --emit ptx is for NVIDIA's GPUs

// An accumulator is operand B of the next product where it is: in the loop shared memory takes what comes from memory, 16
// bytes a lane, and nothing else.
// LLVM-LABEL: define amdgpu_kernel void @serial(
// LLVM: phi
// LLVM-NOT: store {{(<[24] x )?(bfloat|float)>?}} {{.*}}ptr addrspace(3)
// LLVM64: llvm.amdgcn.mfma.f32.16x16x16bf16.1k
// LLVM32: llvm.amdgcn.wmma.f32.16x16x16.bf16
// LLVM-NOT: store {{(<[24] x )?(bfloat|float)>?}} {{.*}}ptr addrspace(3)
// LLVM: ret void
module {
  tile.kernel @serial(%n: index, %head: index, %sequences: !tile.sequences<dense>, %k: !tile.view<?x?x?x64xbf16, unit 3>, %v: !tile.view<?x?x?x64xbf16, unit 3>, %h: !tile.view<?x?x64x64xf32, unit 2>) attributes {arg_names = ["sequences", "k", "v", "h"], grid = ["N", "H"]} {
    %batch, %begin, %end = tile.sequence %sequences, %n : <dense>
    %c64 = arith.constant 64 : index
    %S = tile.load %h[%n, %head] : <?x?x64x64xf32, unit 2> -> tensor<64x64xf32>
    %last = scf.for %i = %begin to %end step %c64 iter_args(%s = %S) -> (tensor<64x64xf32>) {
      %rows = tile.rows %begin, %i, %end : <64>
      %a = tile.load_rows %k[%batch, %rows, %head] : <?x?x?x64xbf16, unit 3>, <64> -> tensor<64x64xbf16>
      %b = tile.load_rows %v[%batch, %rows, %head] : <?x?x?x64xbf16, unit 3>, <64> -> tensor<64x64xbf16>
      %w = tile.cast %s : tensor<64x64xf32> -> tensor<64x64xbf16>
      %p = tile.dot %a, %w : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
      %q = tile.cast %p : tensor<64x64xf32> -> tensor<64x64xbf16>
      %u = tile.dot %b, %q : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
      %next = arith.addf %s, %u : tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    tile.store %last, %h[%n, %head] : tensor<64x64xf32>, <?x?x64x64xf32, unit 2>
  }
  tile.program @op(%sequences: !tile.sequences<dense>, %k: !tile.view<?x?x?x64xbf16, unit 3>, %v: !tile.view<?x?x?x64xbf16, unit 3>, %h: !tile.view<?x?x64x64xf32, unit 2>) attributes {arg_names = ["sequences", "k", "v", "h"]} {
    tile.launch @serial(%sequences, %k, %v, %h) : !tile.sequences<dense>, !tile.view<?x?x?x64xbf16, unit 3>, !tile.view<?x?x?x64xbf16, unit 3>, !tile.view<?x?x64x64xf32, unit 2>
  }
}
