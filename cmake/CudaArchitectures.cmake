# What to compile kernels for, where nobody says: machine code for each major, and PTX of the highest
# for what comes after it. A Python package that pip builds for this machine takes its GPUs alone,
# in a quarter of the time; packages for others are ROBOCACHE_PORTABLE.
set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100-real 120)
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
  message(STATUS "CUDA for the GPUs of this machine: ${found} (CMAKE_CUDA_ARCHITECTURES says others)")
endif()
