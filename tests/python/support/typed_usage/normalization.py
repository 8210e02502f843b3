import numpy as np
import numpy.typing as npt
import torch
from typing_extensions import assert_type

import robocache as rbc

Array = npt.NDArray[np.float32]


def normalization(values: Array, tensor: torch.Tensor) -> None:
    results = rbc.statistics_files.read_lerobot("meta/stats.json")
    assert_type(results, dict[str, rbc.StatisticsResult])
    made = rbc.Normalization.of(results["action"], "quantiles", style="octo", mask=[True, False])
    assert_type(made.apply(values), Array)
    assert_type(made.invert(tensor), torch.Tensor)
    assert_type(made.apply([[1.0, 2.0]]), npt.NDArray[np.float64])
    times: npt.NDArray[np.float64] = np.zeros(3)
    rbc.resample(values, times, times, mean=made.mean, std=made.std)
    rbc.Normalization(shift=[0.0, 1.0], scale=values, bias=-1, low=-1, high=1).to_dict()
    rbc.statistics_files.write_gr00t("stats.json", {"state": results["action"].row(3)})

    rbc.Normalization.of(results["action"], "zscore")  # type: ignore
    rbc.Normalization.of(results["action"], "mean_std", style="act")  # type: ignore
    rbc.Normalization("0", 1)  # type: ignore
    rbc.statistics_files.write_openpi("stats.json", [results["action"]])  # type: ignore
    made.apply(3.0)  # type: ignore
