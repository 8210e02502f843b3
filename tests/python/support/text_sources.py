"""Small texts of trajectories, motion capture and other tools, each by a writer of a folder."""

from __future__ import annotations

import numpy as np


def turning(rows, rate=0.1):
    """Return times, positions [n,3] and quaternions [n,4] (x y z w) of a turn about z."""
    times = np.arange(rows) * rate
    places = np.stack([times, np.sin(times), 1 + 0 * times], 1)
    zero = 0 * times
    return times, places, np.stack([zero, zero, np.sin(times / 2), np.cos(times / 2)], 1)


def lines(path, rows, separator=" ", head="", end="\n"):
    path.parent.mkdir(exist_ok=True)
    text = end.join(separator.join(map(_text, row)) for row in rows)
    path.write_text(head + text + end, newline="")
    return path


def _text(value):
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def tum(folder):
    times, places, turns = turning(24)
    rows = np.column_stack([1.7e9 + times, places, turns]).tolist()
    return lines(folder / "x.txt", rows, head="# ground truth\n")


def matrices(turns, places):
    x, y, z, w = turns.T
    one = 1 + 0 * x
    flat = [
        *(one - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w), places[:, 0]),
        *(2 * (x * y + z * w), one - 2 * (x * x + z * z), 2 * (y * z - x * w), places[:, 1]),
        *(2 * (x * z - y * w), 2 * (y * z + x * w), one - 2 * (x * x + y * y), places[:, 2]),
    ]
    return np.stack(flat, 1)


def kitti(folder):
    times, places, turns = turning(24)
    lines(folder / "x" / "poses.txt", matrices(turns, places).tolist())
    lines(folder / "x" / "times.txt", times[:, None].tolist())
    return folder / "x"


def euroc(folder):
    times, places, turns = turning(20)
    stamps = (1_700_000_000_000_000_000 + times * 1e9).astype(np.int64).tolist()
    head = "#timestamp [ns],p_RS_R_x [m],p_RS_R_y [m],p_RS_R_z [m],"
    head += "q_RS_w [],q_RS_x [],q_RS_y [],q_RS_z []\n"
    rows = np.column_stack([places, turns[:, [3, 0, 1, 2]]]).tolist()
    base = folder / "x" / "mav0"
    base.mkdir(parents=True)
    truth = [[stamp, *row] for stamp, row in zip(stamps, rows)]
    lines(base / "state_groundtruth_estimate0" / "data.csv", truth, ",", head, "\r\n")
    imu = [[stamp, *row] for stamp, row in zip(stamps, places.tolist())]
    lines(base / "imu0" / "data.csv", imu, ",", "#timestamp [ns],a_x [m s^-2],a_y,a_z\n")
    pictures = [[stamp, f"{stamp}.png"] for stamp in stamps]
    lines(base / "cam0" / "data.csv", pictures, ",", "#timestamp [ns],filename\n")
    return folder / "x"


def rtklib(folder):
    head = (
        "% program   : RTKPOST\n"
        "%  GPST                  latitude(deg) longitude(deg)  height(m)   Q  ns   sdn(m)\n"
    )
    rows = [
        f"2023/11/14 22:13:{i:02}.250   36.{i:09}  140.08754000{i % 10}   70.1000   1   8   0.0034"
        for i in range(20)
    ]
    return lines(folder / "x.pos", [[row] for row in rows], head=head)


def rtklib_weeks(folder):
    head = "%  GPST       latitude(d'\")   longitude(d'\")  height(m)   Q  ns\n"
    rows = [f"2288 {i}.500   -0 04 0{i % 10}.5   140 05 15.144   70.1   1   8" for i in range(20)]
    return lines(folder / "x.pos", [[row] for row in rows], head=head)


def motive(folder, rows=16):
    times, places, turns = turning(rows)
    head = (
        "Format Version,1.23,Take Name,Take 1,Capture Frame Rate,10.0,Rotation Type,Quaternion,"
        "Length Units,Meters,Coordinate Space,Global\n\n"
        ",Type,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,"
        "Rigid Body,Marker,Marker,Marker,Marker,Marker,Marker\n"
        ",Name,arm,arm,arm,arm,arm,arm,arm,arm,arm:1,arm:1,arm:1,"
        "Unlabeled 7,Unlabeled 7,Unlabeled 7\n"
        ",ID,1,1,1,1,1,1,1,1,2,2,2,7,7,7\n"
        ",,Rotation,Rotation,Rotation,Rotation,Position,Position,Position,Mean Marker Error,"
        "Position,Position,Position,Position,Position,Position\n"
        "Frame,Time (Seconds),X,Y,Z,W,X,Y,Z,,X,Y,Z,X,Y,Z\n"
    )
    made = [
        [i, t, *turn, *place, 0.001, *(place if i % 3 else ("", "", "")), "", "", ""]
        for i, (t, turn, place) in enumerate(zip(times.tolist(), turns.tolist(), places.tolist()))
    ]
    return lines(folder / "x.csv", made, ",", head)


def vicon(folder, rows=12):
    _, places, turns = turning(rows)
    text = "Devices\n1000\n,,Force Plate - Force,,\nFrame,Sub Frame,Fx,Fy,Fz\n,,N,N,N\n"
    text += "".join(f"{1 + i // 10},{i % 10},{i},0,-1.5\n" for i in range(10 * rows))
    text += "\nObjects\n100\n,,Global Angle drone:drone,,,,,,\n"
    text += "Frame,Sub Frame,RX,RY,RZ,RW,TX,TY,TZ\n,,,,,,mm,mm,mm\n"
    for i, (turn, place) in enumerate(zip(turns.tolist(), places.tolist())):
        text += ",".join(map(_text, [1 + i, 0, *turn, *place])) + "\n"
    text += "\nTrajectories\n100\n,,drone:a,,,drone:b,,\nFrame,Sub Frame,X,Y,Z,X,Y,Z\n"
    text += ",,mm,mm,mm,mm,mm,mm\n"
    text += "".join(f"{1 + i},0,{i},0,2,{',,' if i % 4 else '3,4,5'}\n" for i in range(rows))
    (folder / "x.csv").write_text(text)
    return folder / "x.csv"


def other_texts(folder):
    """Encodings, comments, decimal commas, blanks, and a table without a header."""
    times, places, _ = turning(20)
    rows = np.column_stack([1.7e9 + times, places[:, :2]]).tolist()
    base = folder / "x"
    lines(base / "headerless.csv", rows, ",")
    lines(base / "blanks.txt", rows, "  ", "time_s  x\ty\n")
    lines(base / "above.csv", rows, ",", "made by a logger\n# version 3\ntime_s,x,y\ns,m,m\n")
    lines(base / "savetxt.txt", rows, " ", "# time_s x y\n")
    commas = [[_text(value).replace(".", ",") for value in row] for row in rows]
    lines(base / "commas.csv", commas, ";", "time_s;x;y\n")
    text = "time_s,x [°]\n" + "".join(f"{row[0]:.6f},{row[1]:.6f}\n" for row in rows)
    (base / "utf16.csv").write_bytes(text.encode("utf-16"))
    (base / "latin1.csv").write_bytes(text.encode("latin-1"))
    return base


FORMATS = {
    "tum": tum,
    "kitti": kitti,
    "euroc": euroc,
    "rtklib": rtklib,
    "rtklib-weeks": rtklib_weeks,
    "motive": motive,
    "vicon": vicon,
    "other-texts": other_texts,
}
