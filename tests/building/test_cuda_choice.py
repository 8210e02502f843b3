"""cmake/CudaChoice.cmake decides whether the CUDA backend is built, and for which GPUs.

It runs as a script, with programs named nvcc and nvidia-smi that only print: the test needs no GPU
and no toolkit.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CMAKE = shutil.which(os.environ.get("CMAKE", "cmake"))
RESULTS = ("RBC_WITH_CUDA", "RBC_CUDA_LEFT_OUT", "CMAKE_CUDA_ARCHITECTURES", "rbc_cuda_code")

pytestmark = pytest.mark.skipif(CMAKE is None, reason="CMake is not installed")


class Machine:
    """A machine with some programs and device files."""

    def __init__(self, folder):
        self.folder = folder
        self.programs = folder / "bin"
        self.devices = folder / "dev"
        self.programs.mkdir()
        self.devices.mkdir()

    def add_program(self, name, output="", status=0):
        program = self.programs / name
        program.write_text(f"#!/bin/sh\nprintf '%b' '{output}'\nexit {status}\n")
        program.chmod(0o755)

    def add_nvcc(self):
        self.add_program("nvcc")

    def add_gpus(self, *capabilities):
        self.add_program("nvidia-smi", "".join(f"{number}\\n" for number in capabilities))

    def configure(self, environment=None, processor="x86_64", **variables):
        """Return the variables that the script sets, and its log."""
        script = self.folder / "script.cmake"
        messages = "".join(f'message("RESULT {name}=${{{name}}}")\n' for name in RESULTS)
        script.write_text(f'include("{ROOT}/cmake/CudaChoice.cmake")\n{messages}')
        variables = {
            "ROBOCACHE_CUDA": "AUTO",
            "ROBOCACHE_GPU_FILES": f"{self.devices}/nvidia[0-9]*;{self.devices}/nvgpu",
            "CMAKE_IGNORE_PATH": "/usr/local/cuda/bin",
            "CMAKE_SYSTEM_PROCESSOR": processor,
            **variables,
        }
        done = subprocess.run(
            [CMAKE, *(f"-D{name}={value}" for name, value in variables.items()), "-P", script],
            env={"PATH": str(self.programs), **(environment or {})},
            capture_output=True,
            text=True,
            timeout=60,
        )
        log = done.stdout + done.stderr
        if done.returncode != 0:
            raise ValueError(log)
        found = dict(re.findall(r"^RESULT (\w+)=(.*)$", log, re.M))
        assert set(found) == set(RESULTS)
        return found, log

    def is_built(self, environment=None, **variables):
        found, log = self.configure(environment, **variables)
        built = found["RBC_WITH_CUDA"] == "1"
        assert built == (found["RBC_CUDA_LEFT_OUT"] == "")
        assert len(re.findall(r"^-- .*CUDA.*$", log, re.M)) == 1  # one line reports the choice
        return built


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_without_nvcc(machine):
    machine.add_gpus("9.0")
    assert not machine.is_built()
    assert not machine.is_built(ROBOCACHE_PORTABLE="ON")
    assert not machine.is_built(CMAKE_CUDA_ARCHITECTURES="90-real")
    found, log = machine.configure()
    assert "nvcc was not found" in found["RBC_CUDA_LEFT_OUT"]
    assert f"-- CPU only, without the CUDA backend: {found['RBC_CUDA_LEFT_OUT']}\n" in log


def test_nvcc_without_a_gpu(machine):
    machine.add_nvcc()
    assert not machine.is_built()
    assert not machine.is_built(ROBOCACHE_BUILD_PYTHON="ON")
    found, log = machine.configure()
    assert "no GPU was found" in found["RBC_CUDA_LEFT_OUT"]
    assert "-DROBOCACHE_CUDA=ON" in found["RBC_CUDA_LEFT_OUT"]
    assert f"-- CPU only, without the CUDA backend: {found['RBC_CUDA_LEFT_OUT']}\n" in log


def test_nvcc_and_a_gpu(machine):
    machine.add_nvcc()
    machine.add_gpus("9.0", "9.0", "12.0")
    assert machine.is_built()
    # A Python package for this machine is for its GPUs, any other build for all.
    found, _ = machine.configure(ROBOCACHE_BUILD_PYTHON="ON")
    assert found["CMAKE_CUDA_ARCHITECTURES"] == "90-real;120-real"
    assert found["rbc_cuda_code"] == ""
    for variables in ({}, {"ROBOCACHE_BUILD_PYTHON": "ON", "ROBOCACHE_PORTABLE": "ON"}):
        found, _ = machine.configure(**variables)
        assert found["CMAKE_CUDA_ARCHITECTURES"] == "OFF"
        assert "sm_80" in found["rbc_cuda_code"] and "sm_120" in found["rbc_cuda_code"]


@pytest.mark.parametrize("name", ["nvidia0", "nvgpu"])
def test_a_gpu_that_nvidia_smi_does_not_list(machine, name):
    machine.add_nvcc()
    words = "Failed to initialize NVML: Driver/library version mismatch\\nNVML version: 550.5\\n"
    machine.add_program("nvidia-smi", words, status=18)
    assert not machine.is_built()
    (machine.devices / name).touch()
    assert machine.is_built()
    found, _ = machine.configure(processor="aarch64", ROBOCACHE_BUILD_PYTHON="ON")
    assert "sm_87" in found["rbc_cuda_code"]


def test_a_gpu_that_is_too_old(machine):
    machine.add_nvcc()
    machine.add_gpus("7.5")
    (machine.devices / "nvidia0").touch()
    assert not machine.is_built()
    machine.add_gpus("7.5", "8.6")
    found, _ = machine.configure(ROBOCACHE_BUILD_PYTHON="ON")
    assert found["CMAKE_CUDA_ARCHITECTURES"] == "86-real"


def test_named_architectures(machine):
    machine.add_nvcc()
    assert machine.is_built(CMAKE_CUDA_ARCHITECTURES="90-real")
    found, _ = machine.configure(CMAKE_CUDA_ARCHITECTURES="90-real")
    assert found["CMAKE_CUDA_ARCHITECTURES"] == "90-real" and found["rbc_cuda_code"] == ""
    assert machine.is_built({"CUDAARCHS": "87"})
    found, _ = machine.configure({"CUDAARCHS": "87"})
    assert found["CMAKE_CUDA_ARCHITECTURES"] == "87"
    assert not machine.is_built({"CUDAARCHS": ""})


def test_a_package_for_others(machine):
    machine.add_nvcc()
    assert machine.is_built(ROBOCACHE_PORTABLE="ON")
    assert not machine.is_built(ROBOCACHE_PORTABLE="OFF")


def test_on(machine):
    # Without nvcc, CMake then stops at the missing compiler.
    assert machine.is_built(ROBOCACHE_CUDA="ON")
    machine.add_nvcc()
    found, _ = machine.configure(ROBOCACHE_CUDA="ON")
    assert found["RBC_WITH_CUDA"] == "1" and "sm_90" in found["rbc_cuda_code"]


def test_off(machine):
    machine.add_nvcc()
    machine.add_gpus("9.0")
    assert not machine.is_built(ROBOCACHE_CUDA="OFF")
    assert not machine.is_built({"CUDAARCHS": "90"}, ROBOCACHE_CUDA="OFF", ROBOCACHE_PORTABLE="ON")


def test_another_word(machine):
    with pytest.raises(ValueError, match='"yes", expected AUTO, ON or OFF'):
        machine.configure(ROBOCACHE_CUDA="yes")
