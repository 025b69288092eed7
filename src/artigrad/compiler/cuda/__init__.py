"""The CUDA target of the staging layer: nothing but LLVM to compile and the driver library to run."""
