// RUN: latile-opt %s --split-input-file --verify-diagnostics

// one name too few.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %s: f64, %S: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x?x8xf32>, %i: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "s", "S", "y", "i"]} {
  // expected-error @+1 {{has 2 inputs; reads, read_heads and rates must have as many entries}}
  tile.scan %seq chunk 16 axis "H" in(%x, %s) initial(%S) at() final(%S) at() out(%y)
    {reads = ["x"], read_heads = ["H", ""], rates = array<i64: 1, 0>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: true>, has_final_index = array<i1: false>, writes = ["y"], write_heads = ["H"],
     head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>, f64) initial(!tile.view<?x?x8xf32>) at() final(!tile.view<?x?x8xf32>) at() out(!tile.view<?x?x?x8xf32>) {
  ^bb0(%xc: tensor<16x8xf32>, %sc: tensor<1x1xf32>, %Sc: tensor<1x8xf32>):
    tile.yield %xc, %Sc : tensor<16x8xf32>, tensor<1x8xf32>
  }
}

// -----

// chunk.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %s: f64, %S: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x?x8xf32>, %i: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "s", "S", "y", "i"]} {
  // expected-error @+1 {{chunk must be positive, is 0}}
  tile.scan %seq chunk 0 axis "H" in(%x, %s) initial(%S) at() final(%S) at() out(%y)
    {reads = ["x", "s"], read_heads = ["H", ""], rates = array<i64: 1, 0>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: true>, has_final_index = array<i1: false>, writes = ["y"], write_heads = ["H"],
     head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>, f64) initial(!tile.view<?x?x8xf32>) at() final(!tile.view<?x?x8xf32>) at() out(!tile.view<?x?x?x8xf32>) {
  ^bb0(%xc: tensor<16x8xf32>, %sc: tensor<1x1xf32>, %Sc: tensor<1x8xf32>):
    tile.yield %xc, %Sc : tensor<16x8xf32>, tensor<1x8xf32>
  }
}

// -----

// ratio.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %s: f64, %S: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x?x8xf32>, %i: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "s", "S", "y", "i"]} {
  // expected-error @+1 {{head_ratio must be positive, is 0}}
  tile.scan %seq chunk 16 axis "H" in(%x, %s) initial(%S) at() final(%S) at() out(%y)
    {reads = ["x", "s"], read_heads = ["H", ""], rates = array<i64: 1, 0>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: true>, has_final_index = array<i1: false>, writes = ["y"], write_heads = ["H"],
     head_ratio = 0, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>, f64) initial(!tile.view<?x?x8xf32>) at() final(!tile.view<?x?x8xf32>) at() out(!tile.view<?x?x?x8xf32>) {
  ^bb0(%xc: tensor<16x8xf32>, %sc: tensor<1x1xf32>, %Sc: tensor<1x8xf32>):
    tile.yield %xc, %Sc : tensor<16x8xf32>, tensor<1x8xf32>
  }
}

// -----

// outputs.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %s: f64, %S: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x?x8xf32>, %i: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "s", "S", "y", "i"]} {
  // expected-error @+1 {{has 1 outputs; writes and write_heads must have as many entries}}
  tile.scan %seq chunk 16 axis "H" in(%x, %s) initial(%S) at() final(%S) at() out(%y)
    {reads = ["x", "s"], read_heads = ["H", ""], rates = array<i64: 1, 0>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: true>, has_final_index = array<i1: false>, writes = [], write_heads = ["H"],
     head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>, f64) initial(!tile.view<?x?x8xf32>) at() final(!tile.view<?x?x8xf32>) at() out(!tile.view<?x?x?x8xf32>) {
  ^bb0(%xc: tensor<16x8xf32>, %sc: tensor<1x1xf32>, %Sc: tensor<1x8xf32>):
    tile.yield %xc, %Sc : tensor<16x8xf32>, tensor<1x8xf32>
  }
}

// -----

// flags of carries.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %s: f64, %S: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x?x8xf32>, %i: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "s", "S", "y", "i"]} {
  // expected-error @+1 {{has 1 carries; carry_heads and has_* must have as many entries, and true ones as operands}}
  tile.scan %seq chunk 16 axis "H" in(%x, %s) initial(%S) at() final(%S) at() out(%y)
    {reads = ["x", "s"], read_heads = ["H", ""], rates = array<i64: 1, 0>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: false>, has_initial_index = array<i1: false>,
     has_final = array<i1: true>, has_final_index = array<i1: false>, writes = ["y"], write_heads = ["H"],
     head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>, f64) initial(!tile.view<?x?x8xf32>) at() final(!tile.view<?x?x8xf32>) at() out(!tile.view<?x?x?x8xf32>) {
  ^bb0(%xc: tensor<16x8xf32>, %sc: tensor<1x1xf32>, %Sc: tensor<1x8xf32>):
    tile.yield %xc, %Sc : tensor<16x8xf32>, tensor<1x8xf32>
  }
}

// -----

// arguments of the region.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %s: f64, %S: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x?x8xf32>, %i: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "s", "S", "y", "i"]} {
  // expected-error @+1 {{has 2 inputs and 1 carries; its region has 2 arguments}}
  tile.scan %seq chunk 16 axis "H" in(%x, %s) initial(%S) at() final(%S) at() out(%y)
    {reads = ["x", "s"], read_heads = ["H", ""], rates = array<i64: 1, 0>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: true>, has_final_index = array<i1: false>, writes = ["y"], write_heads = ["H"],
     head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>, f64) initial(!tile.view<?x?x8xf32>) at() final(!tile.view<?x?x8xf32>) at() out(!tile.view<?x?x?x8xf32>) {
  ^bb0(%xc: tensor<16x8xf32>, %Sc: tensor<1x8xf32>):
    tile.yield %xc, %Sc : tensor<16x8xf32>, tensor<1x8xf32>
  }
}

// -----

// heads of an input.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x8xf32>, %s: f64, %S: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x?x8xf32>, %i: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "s", "S", "y", "i"]} {
  // expected-error @+1 {{input "x" needs 3 dynamic extents}}
  tile.scan %seq chunk 16 axis "H" in(%x, %s) initial(%S) at() final(%S) at() out(%y)
    {reads = ["x", "s"], read_heads = ["H", ""], rates = array<i64: 1, 0>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: true>, has_final_index = array<i1: false>, writes = ["y"], write_heads = ["H"],
     head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x8xf32>, f64) initial(!tile.view<?x?x8xf32>) at() final(!tile.view<?x?x8xf32>) at() out(!tile.view<?x?x?x8xf32>) {
  ^bb0(%xc: tensor<16x8xf32>, %sc: tensor<1x1xf32>, %Sc: tensor<1x8xf32>):
    tile.yield %xc, %Sc : tensor<16x8xf32>, tensor<1x8xf32>
  }
}

// -----

// tile of an input.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %s: f64, %S: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x?x8xf32>, %i: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "s", "S", "y", "i"]} {
  // expected-error @+1 {{the block argument of input "x" must be 'tensor<16x8xf32>', is 'tensor<8x8xf32>'}}
  tile.scan %seq chunk 16 axis "H" in(%x, %s) initial(%S) at() final(%S) at() out(%y)
    {reads = ["x", "s"], read_heads = ["H", ""], rates = array<i64: 1, 0>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: true>, has_final_index = array<i1: false>, writes = ["y"], write_heads = ["H"],
     head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>, f64) initial(!tile.view<?x?x8xf32>) at() final(!tile.view<?x?x8xf32>) at() out(!tile.view<?x?x?x8xf32>) {
  ^bb0(%xc: tensor<8x8xf32>, %sc: tensor<1x1xf32>, %Sc: tensor<1x8xf32>):
    %xx = tile.repeat_rows %xc times 2 : tensor<8x8xf32> -> tensor<16x8xf32>
    tile.yield %xx, %Sc : tensor<16x8xf32>, tensor<1x8xf32>
  }
}

// -----

// rate of a scalar.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %s: f64, %S: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x?x8xf32>, %i: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "s", "S", "y", "i"]} {
  // expected-error @+1 {{input "s" is a scalar and has rate 1}}
  tile.scan %seq chunk 16 axis "H" in(%x, %s) initial(%S) at() final(%S) at() out(%y)
    {reads = ["x", "s"], read_heads = ["H", ""], rates = array<i64: 1, 1>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: true>, has_final_index = array<i1: false>, writes = ["y"], write_heads = ["H"],
     head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>, f64) initial(!tile.view<?x?x8xf32>) at() final(!tile.view<?x?x8xf32>) at() out(!tile.view<?x?x?x8xf32>) {
  ^bb0(%xc: tensor<16x8xf32>, %sc: tensor<1x1xf32>, %Sc: tensor<1x8xf32>):
    tile.yield %xc, %Sc : tensor<16x8xf32>, tensor<1x8xf32>
  }
}

// -----

// tile of a carry.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %s: f64, %S: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x?x8xf32>, %i: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "s", "S", "y", "i"]} {
  // expected-error @+1 {{the block argument of carry "S" must be 'tensor<1x8xf32>', is 'tensor<8x1xf32>'}}
  tile.scan %seq chunk 16 axis "H" in(%x, %s) initial(%S) at() final(%S) at() out(%y)
    {reads = ["x", "s"], read_heads = ["H", ""], rates = array<i64: 1, 0>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: true>, has_final_index = array<i1: false>, writes = ["y"], write_heads = ["H"],
     head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>, f64) initial(!tile.view<?x?x8xf32>) at() final(!tile.view<?x?x8xf32>) at() out(!tile.view<?x?x?x8xf32>) {
  ^bb0(%xc: tensor<16x8xf32>, %sc: tensor<1x1xf32>, %Sc: tensor<8x1xf32>):
    tile.yield %xc, %Sc : tensor<16x8xf32>, tensor<8x1xf32>
  }
}

// -----

// index of a carry.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %s: f64, %S: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x?x8xf32>, %i: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "s", "S", "y", "i"]} {
  // expected-error @+1 {{the index of carry "S" is a view <?xi32> or <?xi64>}}
  tile.scan %seq chunk 16 axis "H" in(%x, %s) initial(%S) at(%i) final(%S) at() out(%y)
    {reads = ["x", "s"], read_heads = ["H", ""], rates = array<i64: 1, 0>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: true>,
     has_final = array<i1: true>, has_final_index = array<i1: false>, writes = ["y"], write_heads = ["H"],
     head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>, f64) initial(!tile.view<?x?x8xf32>) at(!tile.view<?xf32>) final(!tile.view<?x?x8xf32>) at() out(!tile.view<?x?x?x8xf32>) {
  ^bb0(%xc: tensor<16x8xf32>, %sc: tensor<1x1xf32>, %Sc: tensor<1x8xf32>):
    tile.yield %xc, %Sc : tensor<16x8xf32>, tensor<1x8xf32>
  }
}

// -----

// what is yielded.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %s: f64, %S: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x?x8xf32>, %i: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "s", "S", "y", "i"]} {
  tile.scan %seq chunk 16 axis "H" in(%x, %s) initial(%S) at() final(%S) at() out(%y)
    {reads = ["x", "s"], read_heads = ["H", ""], rates = array<i64: 1, 0>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: true>, has_final_index = array<i1: false>, writes = ["y"], write_heads = ["H"],
     head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>, f64) initial(!tile.view<?x?x8xf32>) at() final(!tile.view<?x?x8xf32>) at() out(!tile.view<?x?x?x8xf32>) {
  ^bb0(%xc: tensor<16x8xf32>, %sc: tensor<1x1xf32>, %Sc: tensor<1x8xf32>):
    // expected-error @+1 {{yields 1 values; the scan has 1 outputs and 1 carries}}
    tile.yield %xc : tensor<16x8xf32>
  }
}

// -----

// a carry that changes type.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %s: f64, %S: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x?x8xf32>, %i: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "s", "S", "y", "i"]} {
  // expected-error @+1 {{the yielded carry "S" must be 'tensor<1x8xf32>', is 'tensor<8x1xf32>'}}
  tile.scan %seq chunk 16 axis "H" in(%x, %s) initial(%S) at() final(%S) at() out(%y)
    {reads = ["x", "s"], read_heads = ["H", ""], rates = array<i64: 1, 0>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: true>, has_final_index = array<i1: false>, writes = ["y"], write_heads = ["H"],
     head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>, f64) initial(!tile.view<?x?x8xf32>) at() final(!tile.view<?x?x8xf32>) at() out(!tile.view<?x?x?x8xf32>) {
  ^bb0(%xc: tensor<16x8xf32>, %sc: tensor<1x1xf32>, %Sc: tensor<1x8xf32>):
    %T = tile.transpose %Sc : tensor<1x8xf32> -> tensor<8x1xf32>
    tile.yield %xc, %T : tensor<16x8xf32>, tensor<8x1xf32>
  }
}

// -----

// an output in the wrong type.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %s: f64, %S: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x?x8xf32>, %i: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "s", "S", "y", "i"]} {
  // expected-error @+1 {{the yielded output "y" must be 'tensor<16x8xf32>', is 'tensor<16x8xbf16>'}}
  tile.scan %seq chunk 16 axis "H" in(%x, %s) initial(%S) at() final(%S) at() out(%y)
    {reads = ["x", "s"], read_heads = ["H", ""], rates = array<i64: 1, 0>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: true>, has_final_index = array<i1: false>, writes = ["y"], write_heads = ["H"],
     head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>, f64) initial(!tile.view<?x?x8xf32>) at() final(!tile.view<?x?x8xf32>) at() out(!tile.view<?x?x?x8xf32>) {
  ^bb0(%xc: tensor<16x8xf32>, %sc: tensor<1x1xf32>, %Sc: tensor<1x8xf32>):
    %x16 = tile.cast %xc : tensor<16x8xf32> -> tensor<16x8xbf16>
    tile.yield %x16, %Sc : tensor<16x8xbf16>, tensor<1x8xf32>
  }
}

// -----

// a load in a body.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %s: f64, %S: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x?x8xf32>, %i: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "s", "S", "y", "i"]} {
  tile.scan %seq chunk 16 axis "H" in(%x, %s) initial(%S) at() final(%S) at() out(%y)
    {reads = ["x", "s"], read_heads = ["H", ""], rates = array<i64: 1, 0>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: true>, has_final_index = array<i1: false>, writes = ["y"], write_heads = ["H"],
     head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>, f64) initial(!tile.view<?x?x8xf32>) at() final(!tile.view<?x?x8xf32>) at() out(!tile.view<?x?x?x8xf32>) {
  ^bb0(%xc: tensor<16x8xf32>, %sc: tensor<1x1xf32>, %Sc: tensor<1x8xf32>):
    %zero = arith.constant 0 : index
    // expected-error @+1 {{reads or writes memory inside a scan}}
    %l = tile.load %S[%zero, %zero] : !tile.view<?x?x8xf32> -> tensor<1x8xf32>
    tile.yield %xc, %l : tensor<16x8xf32>, tensor<1x8xf32>
  }
}

// -----

// history states between two chunks.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %S: !tile.view<?x?x8xf32>, %i: !tile.view<?xi32>, %t: !tile.view<?x?xi32>, %f: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "S", "i", "t", "f"]} {
  // expected-error @+1 {{history states lie a multiple of the chunk of 16 tokens apart, not 24}}
  tile.scan %seq chunk 16 axis "H" in(%x) initial(%S) at() final() at() out()
    history(%S : !tile.view<?x?x8xf32>) at(%t : !tile.view<?x?xi32>)
    {reads = ["x"], read_heads = ["H"], rates = array<i64: 1>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: false>, has_final_index = array<i1: false>, writes = [], write_heads = [],
     head_ratio = 1, head_map = 0 : i32, every = array<i64: 24>}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>) initial(!tile.view<?x?x8xf32>) at() final() at() out() {
  ^bb0(%xc: tensor<16x8xf32>, %Sc: tensor<1x8xf32>):
    tile.yield %Sc : tensor<1x8xf32>
  }
}

// -----

// a history that nothing keeps.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %S: !tile.view<?x?x8xf32>, %i: !tile.view<?xi32>, %t: !tile.view<?x?xi32>, %f: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "S", "i", "t", "f"]} {
  // expected-error @+1 {{every must have as many entries or be absent, and those above 0 a history and its index each}}
  tile.scan %seq chunk 16 axis "H" in(%x) initial(%S) at() final() at() out()
    history(%S : !tile.view<?x?x8xf32>) at(%t : !tile.view<?x?xi32>)
    {reads = ["x"], read_heads = ["H"], rates = array<i64: 1>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: false>, has_final_index = array<i1: false>, writes = [], write_heads = [],
     head_ratio = 1, head_map = 0 : i32, every = array<i64: 0>}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>) initial(!tile.view<?x?x8xf32>) at() final() at() out() {
  ^bb0(%xc: tensor<16x8xf32>, %Sc: tensor<1x8xf32>):
    tile.yield %Sc : tensor<1x8xf32>
  }
}

// -----

// a history by an index with one axis.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %S: !tile.view<?x?x8xf32>, %i: !tile.view<?xi32>, %t: !tile.view<?x?xi32>, %f: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "S", "i", "t", "f"]} {
  // expected-error @+1 {{the index of carry "S" is a view <?x?xi32> or <?x?xi64>, not '!tile.view<?xi32>'}}
  tile.scan %seq chunk 16 axis "H" in(%x) initial(%S) at() final() at() out()
    history(%S : !tile.view<?x?x8xf32>) at(%i : !tile.view<?xi32>)
    {reads = ["x"], read_heads = ["H"], rates = array<i64: 1>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: false>, has_final_index = array<i1: false>, writes = [], write_heads = [],
     head_ratio = 1, head_map = 0 : i32, every = array<i64: 16>}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>) initial(!tile.view<?x?x8xf32>) at() final() at() out() {
  ^bb0(%xc: tensor<16x8xf32>, %Sc: tensor<1x8xf32>):
    tile.yield %Sc : tensor<1x8xf32>
  }
}

// -----

// an accepted count that is no integer.
tile.program @t(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x8xf32>, %S: !tile.view<?x?x8xf32>, %i: !tile.view<?xi32>, %t: !tile.view<?x?xi32>, %f: !tile.view<?xf32>)
    attributes {arg_names = ["sequences", "x", "S", "i", "t", "f"]} {
  // expected-error @+1 {{accepted is a view <?xi32> or <?xi64>, not '!tile.view<?xf32>'}}
  tile.scan %seq chunk 16 axis "H" in(%x) initial(%S) at() final() at() out()
    accepted(%f : !tile.view<?xf32>)
    {reads = ["x"], read_heads = ["H"], rates = array<i64: 1>, carries = ["S"],
     carry_heads = ["H"], has_initial = array<i1: true>, has_initial_index = array<i1: false>,
     has_final = array<i1: false>, has_final_index = array<i1: false>, writes = [], write_heads = [],
     head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>) initial(!tile.view<?x?x8xf32>) at() final() at() out() {
  ^bb0(%xc: tensor<16x8xf32>, %Sc: tensor<1x8xf32>):
    tile.yield %Sc : tensor<1x8xf32>
  }
}
