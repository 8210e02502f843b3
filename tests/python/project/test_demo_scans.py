"""The demo's voxels from end to end: of its own sweep, and of real clouds where they are there."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import picture_files
import voxel_reference

pytest.importorskip("matplotlib")

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "python"))

import align_recording  # noqa: E402
import demo  # noqa: E402
import depth_to_policy  # noqa: E402
import devices  # noqa: E402
import scans  # noqa: E402
import simulate_lidar  # noqa: E402
import voxelize_scan  # noqa: E402
from simulate_lidar import AZIMUTHS, BEAMS, SENSOR_HEIGHT  # noqa: E402


@dataclass
class Run:
    """The output of one run of the demo for one scan, and the scan."""

    scan: scans.Scan
    arrays: dict[str, np.ndarray]
    summary: str
    picture: Path

    def row(self, call: str) -> list[int]:
        """The numbers behind a call in the summary: voxels, points, dropped, beyond."""
        (line,) = (each for each in self.summary.splitlines() if each.startswith(f"{call}  "))
        return [int(word) for word in line.split()[-4:]]


@pytest.fixture(scope="module", autouse=True)
def _few_runs() -> Iterator[None]:
    """Each call runs six times, so that its time can be printed; two find the same voxels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(voxelize_scan, "RUNS", 1)
        yield


def run_demo(out: Path, *arguments: str) -> None:
    assert voxelize_scan.main([*arguments, "--out", str(out)]) == 0


def load(out: Path, scan: scans.Scan) -> Run:
    with np.load(out / f"{scan.name}.npz") as file:
        arrays = dict(file)
    summary = (out / f"{scan.name}.txt").read_text(encoding="utf-8")
    return Run(scan, arrays, summary, out / f"{scan.name}.png")


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("street")
    run_demo(out)
    return load(out, simulate_lidar.simulate_sweep())


def run_real(folder: Path, out: Path) -> list[Run]:
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    run_demo(out, "--data", str(folder))
    return [load(out, scan) for scan in scans.read_scans(folder, None)]


@pytest.fixture(scope="module")
def lidar_outdoor(recordings: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    (run,) = run_real(recordings / "lidar_outdoor", tmp_path_factory.mktemp("lidar_outdoor"))
    return run


@pytest.fixture(scope="module")
def pcl(recordings: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    runs = run_real(recordings / "pcl", tmp_path_factory.mktemp("pcl"))
    return {run.scan.name: run for run in runs}


def check_against_numpy(run: Run) -> None:
    """Every voxel, mean and pillar, and the numbers of the summary."""
    scan, arrays = run.scan, run.arrays
    points, grid = scan.points, scan.grid
    for name, value in grid.cubes.items():
        np.testing.assert_array_equal(arrays[name], value)
    assert tuple(arrays["columns"]) == scan.columns

    index, inside = voxel_reference.indices_of(points, **grid.cubes)
    counts = np.zeros(grid.shape, int)
    np.add.at(counts, tuple(index[inside].T), 1)
    np.testing.assert_array_equal(arrays["counts"], counts)
    np.testing.assert_array_equal(arrays["coords"], np.argwhere(counts))
    sums = np.zeros((*grid.shape, len(scan.columns)))
    np.add.at(sums, tuple(index[inside].T), points[inside].astype(np.float64))
    means = sums[counts > 0] / counts[counts > 0][:, None]
    np.testing.assert_allclose(arrays["means"], means, rtol=1e-6, atol=1e-6)

    occupied, dropped = np.count_nonzero(counts), np.count_nonzero(~inside)
    expected = [occupied, len(points) - dropped, dropped, 0]
    assert run.row("voxelize count") == run.row("voxelize_sparse mean") == expected
    finite = np.isfinite(points[:, :3]).all(axis=1).sum()
    assert (
        f": {len(points)} points (" in run.summary and f"), {finite} with a return" in run.summary
    )

    voxels, dropped = voxel_reference.grouped_by_voxel(points, grid.pillars)
    places = np.array([place[:2] for place in voxels][: voxelize_scan.MAX_PILLARS])
    np.testing.assert_array_equal(arrays["pillar_coords"], places)
    kept = 0
    for row, chosen in enumerate(list(voxels.values())[: len(places)]):
        first = points[chosen[: voxelize_scan.MAX_POINTS]]
        assert arrays["pillar_counts"][row] == len(first)
        np.testing.assert_array_equal(arrays["pillar_points"][row, : len(first)], first)
        assert not arrays["pillar_points"][row, len(first) :].any()
        kept += len(first)
    beyond = len(points) - dropped - kept
    assert run.row("voxelize_sparse 32 points") == [len(places), kept, dropped, beyond]
    assert run.row("voxelize max") == [len(voxels), len(points) - dropped, dropped, 0]


def check_distances(run: Run) -> None:
    """Free before what a point is, a surface at it: what a ray saw, in the mean of all rays."""
    scan, grid = run.scan, run.scan.grid
    distances = run.arrays["distances"]
    assert distances.shape == grid.shape
    assert np.nanmax(np.abs(distances)) <= np.float32(grid.truncation)
    _, inside = voxel_reference.indices_of(scan.points, **grid.cubes)
    near, sensor = (
        [],
        scan.sensors[np.searchsorted(scan.offsets[1:], np.arange(len(scan.points)), "right")],
    )
    for back in (0.0, 2 * grid.truncation):
        places = scan.points[:, :3].astype(np.float64)
        ranges = np.linalg.norm(places - sensor, axis=1, keepdims=True)
        places -= (places - sensor) / ranges * back
        index, there = voxel_reference.indices_of(places, **grid.cubes)
        chosen = index[inside & there & (ranges[:, 0] > back)]
        near.append(distances[tuple(chosen.T)])
    at, before = near
    # Every ray goes through the voxel of its point, and through those on its way.
    assert not np.isnan(at).any() and not np.isnan(before).any()
    assert np.abs(np.median(at)) < 0.5 * grid.voxel_size
    assert np.median(before) > 0.9 * grid.truncation


def check_picture(path: Path, *colours: str) -> None:
    header = path.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", header[16:24])
    assert width == 1950 and 1000 < height < 3000
    assert 20_000 < path.stat().st_size < 500_000
    counts, found = picture_files.colours_of(path)
    white = counts @ (found == 255).mean(axis=1) / counts.sum()
    assert 0.3 < white < 0.95  # white paper, with something on it
    for colour in colours:
        near = np.abs(found - list(bytes.fromhex(colour))).max(axis=1) <= 5
        assert counts[near].sum() > 500, colour


def test_street_follows_the_rules(street: Run) -> None:
    check_against_numpy(street)
    check_distances(street)


def test_street_picture(street: Run) -> None:
    # Free space, and what nothing was seen of.
    check_picture(street.picture, "0072B2", "E4E4E4")


def test_street_has_what_real_sweeps_have(street: Run) -> None:
    points = street.scan.points
    assert points.shape == (BEAMS * AZIMUTHS, 4) and points.dtype == np.float32
    lost = np.isnan(points[:, 0])
    assert 0.05 < lost.mean() < 0.3  # the sky, and dropouts
    np.testing.assert_array_equal(np.isnan(points[:, :3]), np.repeat(lost[:, None], 3, axis=1))
    position, intensity = points[~lost, :3], points[~lost, 3]
    assert 1 <= intensity.min() and intensity.max() <= 255 and not points[lost, 3].any()
    ranges = np.linalg.norm(position, axis=1)
    assert 0.7 < ranges.min() < 4 and 40 < ranges.max() < 91
    # Noise along the ray: a road that is not quite flat, and nothing below it.
    road = position[(np.abs(position[:, 1]) < 3) & (position[:, 2] < -SENSOR_HEIGHT + 0.05)]
    assert len(road) > 10_000
    assert 0.001 < np.std(road[:, 2]) < 0.01
    assert abs(np.mean(road[:, 2]) + SENSOR_HEIGHT) < 0.001
    assert position[:, 2].min() > -SENSOR_HEIGHT - 0.05
    # Painted lines are brighter than the road around them.
    assert np.percentile(intensity, 99) > 4 * np.percentile(intensity, 20)


def test_another_seed_other_points(street: Run) -> None:
    other = simulate_lidar.simulate_sweep(seed=8)
    assert not np.array_equal(other.points, street.scan.points, equal_nan=True)


@pytest.mark.parametrize(
    ("solid", "ray", "distance", "cosine"),
    [
        (simulate_lidar.Box((10, 0, 0), (2, 4, 6), 1.0), (1, 0, 0), 9.0, 1.0),
        (simulate_lidar.Box((10, 0, 0), (2, 4, 6), 1.0, np.pi / 2), (1, 0, 0), 8.0, 1.0),
        (simulate_lidar.Box((10, 0, 0), (2, 4, 6), 1.0), (-1, 0, 0), np.inf, None),
        (simulate_lidar.Box((10, 0, 0), (2, 4, 6), 1.0), (0.8, 0.6, 0), np.inf, None),
        (simulate_lidar.Box((8, 6, 0), (2, 20, 6), 1.0), (0.8, 0.6, 0), 8.75, 0.8),
        (simulate_lidar.Pole(0, 5, 0.5, -1, 1, 1.0), (0, 1, 0), 4.5, 1.0),
        (simulate_lidar.Pole(0.3, 5, 0.5, -1, 1, 1.0), (0, 1, 0), 4.6, 0.8),
        (simulate_lidar.Pole(0, 5, 0.5, 1, 2, 1.0), (0, 1, 0), np.inf, None),
        (simulate_lidar.Pole(0.6, 5, 0.5, -1, 1, 1.0), (0, 1, 0), np.inf, None),
        (simulate_lidar.Crown((0, 0, 5), 1e-3, 1.0), (0, 1, 0), np.inf, None),
    ],
)
def test_rays_meet_solids(solid, ray, distance: float, cosine: float | None) -> None:
    found, incidence = solid.meet(np.array([ray], float), np.random.default_rng(1))
    assert found[0] == pytest.approx(distance)
    assert cosine is None or incidence[0] == pytest.approx(cosine)


def test_rays_enter_a_crown_some_way() -> None:
    crown = simulate_lidar.Crown((0, 10, 0), 2.0, 0.5)
    found, _ = crown.meet(np.tile([0.0, 1.0, 0.0], (1000, 1)), np.random.default_rng(1))
    met = np.isfinite(found)
    assert 0.9 < met.mean() < 1
    assert (found[met] >= 8).all() and (found[met] <= 12).all() and np.std(found[met]) > 0.3


def test_the_nearest_solid_counts() -> None:
    rays = np.zeros((AZIMUTHS, BEAMS, 3))
    azimuths = np.arange(AZIMUTHS) * (2 * np.pi / AZIMUTHS)
    rays[..., 0], rays[..., 1] = np.cos(azimuths)[:, None], np.sin(azimuths)[:, None]
    scene = [
        simulate_lidar.Box((6, 0, 0), (2, 2, 2), 0.4),
        simulate_lidar.Pole(3, 0, 0.5, -1, 1, 0.7),
        simulate_lidar.Box((-20, 0, 0), (2, 60, 2), 0.2),
    ]
    distance, reflectivity, _ = simulate_lidar.cast_rays(rays, scene, np.random.default_rng(1))
    # Straight on; past the pole on both sides of azimuth 0; back; to the left.
    for degrees, expected, of in ((0, 2.5, 0.7), (180, 19.0, 0.2)):
        column = degrees * AZIMUTHS // 360
        np.testing.assert_allclose(distance[column], expected)
        assert (reflectivity[column] == of).all()
    edge = int(np.degrees(np.arctan2(1, 5)) * AZIMUTHS / 360)
    for column in (edge, -edge):
        np.testing.assert_allclose(distance[column], 5 / np.cos(azimuths[edge]))
    assert np.isinf(distance[AZIMUTHS // 4]).all()


def test_same_seed_same_bytes(
    street: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_demo(tmp_path)
    for suffix in ("npz", "txt", "png"):
        again = (tmp_path / f"street.{suffix}").read_bytes()
        assert again == street.picture.with_suffix(f".{suffix}").read_bytes(), suffix
    printed = capsys.readouterr().out
    assert street.summary in printed
    assert devices.choose_device().words in printed and "M points/s" in printed


def draw_nothing(path: Path, *_: object) -> None:
    """Replace the drawing of pictures, which takes seconds, and which other tests check."""
    path.touch()


def test_voxel_sets_the_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voxelize_scan, "draw_picture", draw_nothing)
    run_demo(tmp_path, "--voxel", "0.75")
    run = load(tmp_path, simulate_lidar.simulate_sweep(voxel_size=0.75))
    assert run.scan.grid.shape == (65, 30, 9)
    check_against_numpy(run)


def test_grid_covers_its_box() -> None:
    grid = scans.grid_over((-1.0, 0.05, 2.0), (1.0, 0.3, 2.0), 0.1)
    assert grid.shape == (20, 3, 1)
    np.testing.assert_allclose(grid.origin, (-1.0, 0.0, 2.0))
    np.testing.assert_allclose(grid.end, (1.0, 0.3, 2.1))
    assert grid.pillars["shape"] == (20, 3, 1)
    np.testing.assert_allclose(grid.pillars["voxel_size"], (0.1, 0.1, 0.1))


def write_pcd(path: Path, columns: str, rows: list[str]) -> None:
    names = columns.split()
    path.write_text(
        f"VERSION 0.7\nFIELDS {columns}\nSIZE {' '.join('4' for _ in names)}\n"
        f"TYPE {' '.join('F' for _ in names)}\nWIDTH {len(rows)}\nHEIGHT 1\n"
        f"POINTS {len(rows)}\nDATA ascii\n" + "".join(f"{row}\n" for row in rows)
    )


def test_small_clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voxelize_scan, "draw_picture", draw_nothing)
    write_pcd(tmp_path / "one.pcd", "x y z", ["1 2 3"])
    write_pcd(
        tmp_path / "two.pcd", "x y z intensity", ["1 2 3 9", "nan nan nan 0", "0 0 0 1", "2 2 2 5"]
    )
    run_demo(tmp_path / "out", "--data", str(tmp_path))
    one, two = (load(tmp_path / "out", scan) for scan in scans.read_scans(tmp_path, None))
    assert one.row("voxelize count") == [1, 1, 0, 0]
    assert "distances" not in one.arrays
    # Points that are NaN, and points that a driver writes for a beam without a return.
    assert two.row("voxelize count") == [2, 2, 2, 0]
    for run in (one, two):
        check_against_numpy(run)


def test_bad_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for size in ("0", "-1", "nan", "inf"):
        with pytest.raises(SystemExit):
            voxelize_scan.main(["--voxel", size, "--out", str(tmp_path)])
        assert "--voxel" in capsys.readouterr().err

    def fails(words: str, *arguments: str) -> None:
        data = () if "--voxel" in arguments else ("--data", str(tmp_path))
        assert voxelize_scan.main([*arguments, *data, "--out", str(tmp_path)]) == 1
        assert words in capsys.readouterr().err

    fails("voxel size: 0.001 m makes", "--voxel", "0.001")
    fails(f"{tmp_path}: no point clouds")
    write_pcd(tmp_path / "a.pcd", "x y", ["1 2"])
    fails("a.pcd: field z: is missing")
    write_pcd(tmp_path / "a.pcd", "x y z", ["nan 2 3"])
    fails("a.pcd: no point is finite")
    (tmp_path / "a.pcd").write_text("not a cloud\n")
    fails("a.pcd: unknown format")
    write_pcd(tmp_path / "a.pcd", "x y z intensity", ["1 2 3 4", "2 3 4 5"])
    np.savetxt(tmp_path / "relative.txt", np.eye(4))
    fails("relative.txt: got shape (4, 4) and PCD files: 1, expected (4, 4) and 2")
    write_pcd(tmp_path / "b.pcd", "x y z", ["1 2 3"])
    fails("relative.txt: expected two clouds that are sweeps of one LiDAR")


def test_demo_does_what_the_folder_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called: list[tuple[str, list[str]]] = []
    for program in (align_recording, voxelize_scan, depth_to_policy):
        monkeypatch.setattr(
            program,
            "main",
            lambda passed, name=program.__name__: called.append((name, passed)) or 0,
        )
    out = ["--out", str(tmp_path / "out")]
    assert demo.main(out) == 0
    assert called == [("align_recording", out), ("voxelize_scan", out), ("depth_to_policy", out)]
    called.clear()
    data = ["--data", str(tmp_path)]
    assert demo.main([*out, *data]) == 0
    (tmp_path / "depth").mkdir()
    assert demo.main([*out, *data]) == 0
    assert called.pop() == ("depth_to_policy", out + data)
    write_pcd(tmp_path / "a.pcd", "x y z", ["1 2 3"])
    assert demo.main([*out, *data]) == 0
    assert called == [("align_recording", out + data), ("voxelize_scan", out + data)]
    monkeypatch.undo()
    assert demo.main(["--data", str(tmp_path / "missing"), *out]) == 1
    assert "not a recording that this demo can read" in capsys.readouterr().err


def test_lidar_outdoor_follows_the_rules(lidar_outdoor: Run) -> None:
    assert len(lidar_outdoor.scan.points) == 69088 + 69792
    check_against_numpy(lidar_outdoor)
    check_distances(lidar_outdoor)
    check_picture(lidar_outdoor.picture, "0072B2", "E4E4E4")


def test_lidar_outdoor_sweeps_meet_by_their_pose(lidar_outdoor: Run, recordings: Path) -> None:
    scan = lidar_outdoor.scan
    pose = np.loadtxt(recordings / "lidar_outdoor" / "relative.txt")

    def voxels(points: np.ndarray) -> set[tuple[int, ...]]:
        finite = points[np.isfinite(points).all(axis=1), :3]
        return set(map(tuple, np.floor(finite / 0.2).astype(int).tolist()))

    first, second = (scan.points[a:b] for a, b in zip(scan.offsets, scan.offsets[1:]))
    unmoved = (second[:, :3] - pose[:3, 3]) @ pose[:3, :3]
    assert len(voxels(first) & voxels(second)) > 1.4 * len(voxels(first) & voxels(unmoved))


def test_pcl_follows_the_rules(pcl: dict[str, Run]) -> None:
    assert {"bunny", "lamppost", "milk_color", "office1"} <= set(pcl)
    for run in pcl.values():
        check_against_numpy(run)
        check_picture(run.picture)
        assert ("distances" in run.arrays) == run.scan.has_colours


def test_pcl_office(pcl: dict[str, Run]) -> None:
    office = pcl["office1"]
    assert "640 x 480 pixels" in office.summary and "254456 with a return" in office.summary
    check_distances(office)
    # Up is up: there is more of the floor, which is dark, below than above.
    z, colour = office.arrays["means"][:, 2], office.arrays["means"][:, 3:]
    assert (colour >= 0).all() and (colour <= 1).all()
    assert colour[z < np.percentile(z, 10)].mean() < colour[z > np.percentile(z, 90)].mean()
