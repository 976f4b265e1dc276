#include "tests/emulator/Texts.h"

namespace latile::emulator {

const std::string declarations = R"(
target triple = "nvptx64-nvidia-cuda"
@latile_shared = external addrspace(3) global [0 x i8], align 1024
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)
declare void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32)
)";

const std::string copy_text = declarations + R"(
define ptx_kernel void @copy(ptr addrspace(1) %x, ptr addrspace(1) %o, i64 %n) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %d = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %first = mul i32 %b, %d
  %i32 = add i32 %first, %t
  %i = zext i32 %i32 to i64
  %inside = icmp ult i64 %i, %n
  br i1 %inside, label %then, label %done
then:
  %xp = getelementptr float, ptr addrspace(1) %x, i64 %i
  %v = load float, ptr addrspace(1) %xp, align 4 ;@tile.load:1
  %op = getelementptr float, ptr addrspace(1) %o, i64 %i
  store float %v, ptr addrspace(1) %op, align 4 ;@tile.store:2
  br label %done
done:
  ret void
}
)";

const std::string transpose_text = declarations + R"(
define ptx_kernel void @transpose(ptr addrspace(1) %x, ptr addrspace(1) %o) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %in
in:
  %e = phi i32 [ %t, %entry ], [ %e2, %in ]
  %xp = getelementptr float, ptr addrspace(1) %x, i32 %e
  %v = load float, ptr addrspace(1) %xp, align 4 ;@tile.load:1
  %sp = getelementptr float, ptr addrspace(3) @latile_shared, i32 %e
  store float %v, ptr addrspace(3) %sp, align 4 ;@tile.transpose:2
  %e2 = add i32 %e, 256
  %more = icmp ult i32 %e2, 1024
  br i1 %more, label %in, label %mid
mid:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0) ;@tile.transpose:2
  br label %out
out:
  %f = phi i32 [ %t, %mid ], [ %f2, %out ]
  %r = lshr i32 %f, 5
  %c = and i32 %f, 31
  %c32 = shl i32 %c, 5
  %g = add i32 %c32, %r
  %gp = getelementptr float, ptr addrspace(3) @latile_shared, i32 %g
  %w = load float, ptr addrspace(3) %gp, align 4 ;@tile.convert_layout:3
  %op = getelementptr float, ptr addrspace(1) %o, i32 %f
  store float %w, ptr addrspace(1) %op, align 4 ;@tile.store:4
  %f2 = add i32 %f, 256
  %again = icmp ult i32 %f2, 1024
  br i1 %again, label %out, label %done
done:
  ret void
}
)";

const std::string swizzle_text = declarations + R"(
define ptx_kernel void @swizzle(ptr addrspace(1) %x, ptr addrspace(1) %o) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %row = lshr i32 %t, 3
  %piece = and i32 %t, 7
  %xp = getelementptr <4 x float>, ptr addrspace(1) %x, i32 %t
  %v = load <4 x float>, ptr addrspace(1) %xp, align 16 ;@tile.load:1
  %phase = and i32 %row, 7
  %at = xor i32 %piece, %phase
  %pitch = shl i32 %row, 3
  %s = add i32 %pitch, %at
  %sp = getelementptr <4 x float>, ptr addrspace(3) @latile_shared, i32 %s
  store <4 x float> %v, ptr addrspace(3) %sp, align 16 ;@tile.store_shared:2
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0) ;@tile.store_shared:2
  %phase2 = and i32 %piece, 7
  %at2 = xor i32 %row, %phase2
  %pitch2 = shl i32 %piece, 3
  %s2 = add i32 %pitch2, %at2
  %sp2 = getelementptr <4 x float>, ptr addrspace(3) @latile_shared, i32 %s2
  %w = load <4 x float>, ptr addrspace(3) %sp2, align 16 ;@tile.convert_layout:3
  %op = getelementptr <4 x float>, ptr addrspace(1) %o, i32 %t
  store <4 x float> %w, ptr addrspace(1) %op, align 16 ;@tile.store:4
  ret void
}
)";

const std::string stages_text = declarations + R"(
define ptx_kernel void @stages(ptr addrspace(1) %x, ptr addrspace(1) %o, i64 %n64) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %n = trunc i64 %n64 to i32
  %first = getelementptr <4 x i32>, ptr addrspace(3) @latile_shared, i32 %t
  %from = getelementptr <4 x i32>, ptr addrspace(1) %x, i32 %t
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %first, ptr addrspace(1) %from) ;@tile.copy_start:1
  call void @llvm.nvvm.cp.async.commit.group() ;@tile.copy_start:1
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %end ]
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %start, label %started
start:
  %odd = and i32 %next, 1
  %stage = shl i32 %odd, 7
  %to = add i32 %stage, %t
  %top = getelementptr <4 x i32>, ptr addrspace(3) @latile_shared, i32 %to
  %step = shl i32 %next, 7
  %piece = add i32 %step, %t
  %piecep = getelementptr <4 x i32>, ptr addrspace(1) %x, i32 %piece
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %top, ptr addrspace(1) %piecep) ;@tile.copy_start:2
  br label %started
started:
  call void @llvm.nvvm.cp.async.commit.group() ;@tile.copy_start:2
  call void @llvm.nvvm.cp.async.wait.group(i32 1) ;@tile.copy_wait:3
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0) ;@tile.copy_wait:3
  %mirror = sub i32 127, %t
  %parity = and i32 %i, 1
  %base = shl i32 %parity, 7
  %read = add i32 %base, %mirror
  %readp = getelementptr <4 x i32>, ptr addrspace(3) @latile_shared, i32 %read
  %v = load <4 x i32>, ptr addrspace(3) %readp, align 16 ;@tile.dot:4
  %done_steps = shl i32 %i, 7
  %out = add i32 %done_steps, %t
  %outp = getelementptr <4 x i32>, ptr addrspace(1) %o, i32 %out
  store <4 x i32> %v, ptr addrspace(1) %outp, align 16 ;@tile.store:5
  br label %end
end:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0) ;@tile.release:6
  %again = icmp ult i32 %next, %n
  br i1 %again, label %loop, label %done
done:
  ret void
}
)";

const std::string product_text = declarations + R"(
declare {float,float,float,float} @llvm.nvvm.mma.m16n8k16.row.col.bf16(i32,i32,i32,i32,i32,i32,float,float,float,float)
define ptx_kernel void @product(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %d) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %g = lshr i32 %t, 2
  %q = and i32 %t, 3
  %q2 = shl i32 %q, 1
  %r0 = shl i32 %g, 4
  %o0 = add i32 %r0, %q2
  %a0p = getelementptr i16, ptr addrspace(1) %a, i32 %o0
  %a1p = getelementptr i8, ptr addrspace(1) %a0p, i32 256
  %a2p = getelementptr i8, ptr addrspace(1) %a0p, i32 16
  %a3p = getelementptr i8, ptr addrspace(1) %a0p, i32 272
  %b0p = getelementptr i16, ptr addrspace(1) %b, i32 %o0
  %b1p = getelementptr i8, ptr addrspace(1) %b0p, i32 16
  %a0 = load i32, ptr addrspace(1) %a0p, align 4 ;@tile.load:1
  %a1 = load i32, ptr addrspace(1) %a1p, align 4 ;@tile.load:1
  %a2 = load i32, ptr addrspace(1) %a2p, align 4 ;@tile.load:1
  %a3 = load i32, ptr addrspace(1) %a3p, align 4 ;@tile.load:1
  %b0 = load i32, ptr addrspace(1) %b0p, align 4 ;@tile.load:2
  %b1 = load i32, ptr addrspace(1) %b1p, align 4 ;@tile.load:2
  %p = call {float,float,float,float} @llvm.nvvm.mma.m16n8k16.row.col.bf16(i32 %a0, i32 %a1, i32 %a2, i32 %a3, i32 %b0, i32 %b1, float 0.0, float 0.0, float 0.0, float 0.0) ;@tile.dot:3
  %d0 = extractvalue {float,float,float,float} %p, 0
  %d1 = extractvalue {float,float,float,float} %p, 1
  %d2 = extractvalue {float,float,float,float} %p, 2
  %d3 = extractvalue {float,float,float,float} %p, 3
  %c8 = shl i32 %g, 3
  %co = add i32 %c8, %q2
  %c0 = getelementptr float, ptr addrspace(1) %d, i32 %co
  %c1 = getelementptr float, ptr addrspace(1) %c0, i32 1
  %c2 = getelementptr float, ptr addrspace(1) %c0, i32 64
  %c3 = getelementptr float, ptr addrspace(1) %c0, i32 65
  store float %d0, ptr addrspace(1) %c0, align 4 ;@tile.store:4
  store float %d1, ptr addrspace(1) %c1, align 4 ;@tile.store:4
  store float %d2, ptr addrspace(1) %c2, align 4 ;@tile.store:4
  store float %d3, ptr addrspace(1) %c3, align 4 ;@tile.store:4
  ret void
}
)";

}  // namespace latile::emulator
