"""CUDA target of the staging compiler. It compiles with LLVM and runs with the driver library, without the CUDA toolkit."""
