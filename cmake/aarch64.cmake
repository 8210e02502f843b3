# 64-bit ARM, compiled on another machine and run under QEMU's user mode. On Debian:
# g++-aarch64-linux-gnu and qemu-user-static.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;/usr/aarch64-linux-gnu)

# Headers that are the same everywhere, such as those of Highway and xxHash, come from this machine.
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)

# Python's headers, from scripts/aarch64_python.sh.
if(ROBOCACHE_AARCH64_PYTHON)
  file(GLOB Python_INCLUDE_DIR ${ROBOCACHE_AARCH64_PYTHON}/usr/include/python3*)
  set(CMAKE_C_FLAGS_INIT "-isystem ${ROBOCACHE_AARCH64_PYTHON}/usr/include")
endif()

# The CUDA runtime for ARM, from scripts/aarch64_cuda.sh. The compiler and its headers, which are
# the same for both, are this machine's; if its toolkit has headers for ARM, nvcc finds those first.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ROBOCACHE_AARCH64_CUDA)
if(ROBOCACHE_AARCH64_CUDA)
  find_program(ROBOCACHE_NVCC nvcc PATHS /usr/local/cuda/bin)
  file(REAL_PATH ${ROBOCACHE_NVCC} nvcc)
  cmake_path(GET nvcc PARENT_PATH toolkit)
  cmake_path(GET toolkit PARENT_PATH toolkit)
  set(CMAKE_CUDA_HOST_COMPILER aarch64-linux-gnu-g++)
  set(CMAKE_CUDA_FLAGS_INIT
    "-I${toolkit}/include -isystem ${toolkit}/include/cccl -L${ROBOCACHE_AARCH64_CUDA}")
  foreach(library CUDA_cudart_static_LIBRARY CUDA_CUDART) # the variables of FindCUDAToolkit
    set(${library} ${ROBOCACHE_AARCH64_CUDA}/libcudart_static.a CACHE FILEPATH "")
  endforeach()
endif()
