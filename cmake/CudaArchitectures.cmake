# What to compile kernels for, where nobody says: machine code for each major, and PTX for what comes
# after them. A Python package that pip builds for this machine takes its GPUs alone, in a fraction
# of the time; packages for others are ROBOCACHE_PORTABLE.

# The kernels use nothing newer than 9.0: one PTX for it and later majors saves a third of the time.
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
if(NOT ROBOCACHE_BUILD_PYTHON OR ROBOCACHE_PORTABLE)
  return()
endif()
find_program(ROBOCACHE_NVIDIA_SMI nvidia-smi)
if(NOT ROBOCACHE_NVIDIA_SMI)
  return()
endif()
execute_process(COMMAND ${ROBOCACHE_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
  OUTPUT_VARIABLE found ERROR_QUIET)
# From 8.0 on; a driver that fails prints words.
string(REGEX MATCHALL "[89]\\.[0-9]|1[0-9]\\.[0-9]" found "${found}")
if(found)
  list(REMOVE_DUPLICATES found)
  list(TRANSFORM found REPLACE "\\." "")
  list(TRANSFORM found APPEND "-real")
  set(CMAKE_CUDA_ARCHITECTURES ${found})
  set(rbc_cuda_code)
  message(STATUS "CUDA for the GPUs of this machine: ${found} (CMAKE_CUDA_ARCHITECTURES says others)")
endif()
