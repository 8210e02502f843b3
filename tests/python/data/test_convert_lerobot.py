"""The package lerobot itself loads a converted data set, and trains a policy with it.

It needs ROBOCACHE_LEROBOT_PYTHON, an interpreter with lerobot.
"""

import json
import os
import subprocess

import pytest

import policy_bags as bags
from robocache import data

PYTHON = os.environ.get("ROBOCACHE_LEROBOT_PYTHON")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="ROBOCACHE_LEROBOT_PYTHON names no interpreter with lerobot"
)
STEPS = 20
TRAIN = """
import json, sys, torch
from lerobot.configs.types import FeatureType
from lerobot.datasets.lerobot_dataset import LeRobotDataset, LeRobotDatasetMetadata
try:
    from lerobot.datasets.utils import dataset_to_policy_features
except ImportError:  # newer LeRobot
    from lerobot.utils.feature_utils import dataset_to_policy_features
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.factory import make_pre_post_processors

root, steps = sys.argv[1], int(sys.argv[2])
meta = LeRobotDatasetMetadata("test/test", root=root)
features = dataset_to_policy_features(meta.features)
outputs = {k: f for k, f in features.items() if f.type is FeatureType.ACTION}
inputs = {k: f for k, f in features.items() if k not in outputs}
config = ACTConfig(input_features=inputs, output_features=outputs, n_heads=4, dim_model=64,
                   pretrained_backbone_weights=None, chunk_size=10, n_action_steps=10,
                   dim_feedforward=128, n_encoder_layers=1, device="cpu")
policy = ACTPolicy(config).train()
before, _ = make_pre_post_processors(config, dataset_stats=meta.stats)
rows = {"action": [i / meta.fps for i in range(10)]}
made = LeRobotDataset("test/test", root=root, delta_timestamps=rows)
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-4)
loader = torch.utils.data.DataLoader(made, batch_size=2, shuffle=True, drop_last=True)
losses = []
while len(losses) < steps:
    for batch in loader:
        loss, _ = policy.forward(before(batch))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if len(losses) == steps:
            break
shapes = {k: [f.type.name, list(f.shape)] for k, f in {**inputs, **outputs}.items()}
print(json.dumps([len(made), made.num_episodes, made[0]["task"], shapes, losses]))
"""


def test_act_trains(tmp_path):
    pytest.importorskip("av", reason="PyAV is not installed")
    for k in range(2):
        bags.write_bag(tmp_path / "bags" / f"run_{k}", seed=k, seconds=2)
    data.convert(
        tmp_path / "bags",
        tmp_path / "set",
        rate=20,
        tracks={
            "observation.state": ["/joint_states:position"],
            "observation.environment_state": ["/odom"],
            "action": ["/commands"],
        },
        images={"front": "/front/image_raw", "wrist": "/wrist/compressed"},
        tasks="pick",
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub")}
    environment.pop("PYTHONPATH", None)
    run = subprocess.run(
        [PYTHON, "-c", TRAIN, str(tmp_path / "set"), str(STEPS)],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert run.returncode == 0, run.stderr
    rows, episodes, task, shapes, losses = json.loads(run.stdout.splitlines()[-1])
    assert (rows, episodes, task) == (80, 2, "pick") and len(losses) == STEPS
    assert shapes == {
        "observation.state": ["STATE", [2]],
        "observation.environment_state": ["ENV", [3]],
        "observation.images.front": ["VISUAL", [3, 96, 96]],
        "observation.images.wrist": ["VISUAL", [3, 96, 96]],
        "action": ["ACTION", [2]],
    }
