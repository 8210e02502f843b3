# Decides whether the CUDA backend is built, and for which GPUs.
#
# ROBOCACHE_CUDA=ON builds it and OFF does not. AUTO builds it if nvcc is found and something can
# run it: a GPU is present, architectures are named (CMAKE_CUDA_ARCHITECTURES, or CUDAARCHS in the
# environment), or the build is a package for other machines (ROBOCACHE_PORTABLE). Otherwise the
# minutes to compile the kernels would be wasted.
#
# Sets RBC_WITH_CUDA to 0 or 1. With 0, RBC_CUDA_LEFT_OUT says why and what to do: CMake prints it, and so
# does the library. With 1, CMAKE_CUDA_ARCHITECTURES and rbc_cuda_code say which GPUs the kernels are for.
# tests/building/test_cuda_choice.py runs this file as a script.

set(RBC_WITH_CUDA 0)
set(RBC_CUDA_LEFT_OUT "")
set(rbc_cuda_code "")
set(rbc_gpus "") # compute capabilities, such as 90, of the GPUs that nvidia-smi lists
set(rbc_gpu_files "") # device files of the drivers

if(NOT ROBOCACHE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "ROBOCACHE_CUDA is \"${ROBOCACHE_CUDA}\", expected AUTO, ON or OFF")
endif()
if(NOT ROBOCACHE_CUDA STREQUAL "OFF")
  find_program(ROBOCACHE_NVCC nvcc PATHS /usr/local/cuda/bin)
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT "$ENV{CUDAARCHS}" STREQUAL "")
  set(CMAKE_CUDA_ARCHITECTURES "$ENV{CUDAARCHS}" CACHE STRING "GPU architectures to build for")
endif()

# --- Which GPUs are present ------------------------------------------------------------------------

if(NOT ROBOCACHE_CUDA STREQUAL "OFF" AND ROBOCACHE_NVCC)
  find_program(ROBOCACHE_NVIDIA_SMI nvidia-smi)
  set(found "")
  if(ROBOCACHE_NVIDIA_SMI)
    execute_process(COMMAND ${ROBOCACHE_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE found ERROR_QUIET)
  endif()
  string(REPLACE "\n" ";" found "${found}")
  list(FILTER found INCLUDE REGEX "^[0-9]+\\.[0-9]$") # a driver that fails prints text
  if(found)
    list(FILTER found INCLUDE REGEX "^([89]|[0-9][0-9])\\.") # the kernels need 8.0
    list(REMOVE_DUPLICATES found)
    list(TRANSFORM found REPLACE "\\." "" OUTPUT_VARIABLE rbc_gpus)
  else() # Jetson's nvidia-smi lists none, or is missing
    if(NOT DEFINED ROBOCACHE_GPU_FILES)
      set(ROBOCACHE_GPU_FILES "/dev/nvidia[0-9]*;/dev/nvhost-gpu;/dev/nvgpu")
    endif()
    file(GLOB rbc_gpu_files ${ROBOCACHE_GPU_FILES})
  endif()
endif()

# --- Whether to build ------------------------------------------------------------------------------

if(ROBOCACHE_CUDA STREQUAL "OFF")
  set(RBC_CUDA_LEFT_OUT "ROBOCACHE_CUDA is OFF")
elseif(ROBOCACHE_CUDA STREQUAL "ON")
  set(RBC_WITH_CUDA 1)
elseif(NOT ROBOCACHE_NVCC)
  set(RBC_CUDA_LEFT_OUT
    "nvcc was not found (install the CUDA toolkit, and build with -DROBOCACHE_CUDA=ON)")
elseif(rbc_gpus OR rbc_gpu_files OR ROBOCACHE_PORTABLE OR DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(RBC_WITH_CUDA 1)
else()
  set(RBC_CUDA_LEFT_OUT
    "no GPU was found when it was built (-DROBOCACHE_CUDA=ON builds it without one)")
endif()
if(NOT RBC_WITH_CUDA)
  message(STATUS "CPU only, without the CUDA backend: ${RBC_CUDA_LEFT_OUT}")
  return()
endif()

# --- For which GPUs --------------------------------------------------------------------------------

if(DEFINED CMAKE_CUDA_ARCHITECTURES)
  message(STATUS "CUDA for the given architectures: ${CMAKE_CUDA_ARCHITECTURES}")
elseif(rbc_gpus AND ROBOCACHE_BUILD_PYTHON AND NOT ROBOCACHE_PORTABLE)
  # A Python package that pip builds for this machine: takes a fraction of the time.
  list(TRANSFORM rbc_gpus APPEND "-real" OUTPUT_VARIABLE CMAKE_CUDA_ARCHITECTURES)
  message(STATUS "CUDA for the GPUs of this machine: ${CMAKE_CUDA_ARCHITECTURES} "
    "(set CMAKE_CUDA_ARCHITECTURES for others)")
else()
  # Machine code for each major, and PTX for later ones. The kernels use nothing newer than 9.0: one
  # PTX for it and later majors saves a third of the time.
  set(CMAKE_CUDA_ARCHITECTURES OFF)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64") # Orin; Grace with Hopper and Blackwell; Thor, Spark
    set(rbc_cuda_code
      "--generate-code=arch=compute_87,code=[sm_87]"
      "--generate-code=arch=compute_90,code=[compute_90,sm_90,sm_100,sm_110,sm_121]")
  else()
    set(rbc_cuda_code
      "--generate-code=arch=compute_80,code=[sm_80]"
      "--generate-code=arch=compute_90,code=[compute_90,sm_90,sm_100,sm_120]")
  endif()
  message(STATUS "CUDA for all supported GPUs (set CMAKE_CUDA_ARCHITECTURES for fewer)")
endif()
