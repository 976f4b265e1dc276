# lit configuration: each .mlir file is one test, run by its RUN lines.
import os
import lit.formats

config.name = "latile"
config.test_format = lit.formats.ShTest(not os.environ.get("LIT_USE_EXTERNAL_SHELL"))
config.suffixes = [".mlir"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.latile_binary_dir, "tests", "lit", "out")
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.latile_binary_dir, "bin"), config.llvm_tools_dir, config.environment["PATH"]])
