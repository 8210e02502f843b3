"""rbcImages in NumPy, from include/robocache/images.h and docs/concepts/images.md.

Slow, and without code of the library. Images are [H,W,C] of uint8.
"""

import math

import numpy as np

RADIUS = {"box": 0.5, "bilinear": 1.0, "hamming": 1.0, "bicubic": 2.0, "lanczos3": 3.0}
FILTERS = {
    "pillow": [*RADIUS],
    "pillow_12": [*RADIUS],
    "pillow_13": [*RADIUS],
    "exact": [*RADIUS],
    "torchvision": ["bilinear", "bicubic", "linear"],
    "opencv": ["linear", "linear_exact", "area"],
}


def _sinc(x):
    return 1.0 if x == 0 else math.sin(x * math.pi) / (x * math.pi)


def _filter(name, x):
    size = abs(x)
    if name == "box":
        return 1.0 if -0.5 < x <= 0.5 else 0.0
    if name == "bilinear":
        return max(1.0 - size, 0.0)
    if name == "hamming":
        high, low = float(np.float32(0.54)), float(np.float32(0.46))
        return _sinc(size) * (high + low * math.cos(size * math.pi)) if size < 1 else 0.0
    if name == "bicubic":
        a = -0.5
        if size < 1:
            return ((a + 2.0) * size - (a + 3.0)) * size * size + 1
        return (((size - 5) * size + 8) * size - 4) * a if size < 2 else 0.0
    return _sinc(x) * _sinc(x / 3) if -3 <= x < 3 else 0.0


def filter_weights(name, size, out):
    """Return (first pixel, weights in f64) of each output pixel."""
    scale = size / out
    stretch = max(scale, 1.0)
    support = RADIUS[name] * stretch
    rows = []
    for i in range(out):
        centre = (i + 0.5) * scale
        first = max(int(centre - support + 0.5), 0)
        end = min(int(centre + support + 0.5), size)
        weights = [
            _filter(name, (first + j - centre + 0.5) * (1 / stretch)) for j in range(end - first)
        ]
        total = 0.0
        for w in weights:
            total += w
        rows.append((first, [w / total if total else w for w in weights]))
    return rows


def linear_weights(size, out):
    """Return the two pixels of torchvision without antialias."""
    scale = size / out
    rows = []
    for i in range(out):
        at = max(scale * (i + 0.5) - 0.5, 0.0)
        first = min(int(at), size - 1)
        share = min(max(at - first, 0.0), 1.0)
        rows.append((first, [1.0] if first == size - 1 else [1.0 - share, share]))
    return rows


def _rounded(weights, bits):
    return [int(math.trunc(w * 2.0**bits + (0.5 if w >= 0 else -0.5))) for w in weights]


def _pass(image, rows, bits, axis):
    """Return one pass of integer weights, rounded to u8."""
    pixels = np.moveaxis(image, axis, 0).astype(np.int64)
    out = np.empty((len(rows), *pixels.shape[1:]), np.uint8)
    for i, (first, weights) in enumerate(rows):
        total = np.full(pixels.shape[1:], 1 << (bits - 1), np.int64)
        for j, w in enumerate(weights):
            total += w * pixels[first + j]
        out[i] = np.clip(total >> bits, 0, 255)
    return np.moveaxis(out, 0, axis)


def _sixteen_bits(rows):
    """Return weights of 16 bits, and the number of their fraction's bits."""
    most = max(max(weights) for _, weights in rows)
    bits = max(p for p in range(23) if p == 0 or int(0.5 + most * 2.0**p) < 2**15)
    return [(first, _rounded(weights, bits)) for first, weights in rows], bits


def _two_passes(image, h, w, rows_of, vertical_first):
    order = (0, 1) if vertical_first else (1, 0)
    for axis in order:
        size, out = image.shape[axis], (h, w)[axis]
        if size != out:
            rows, bits = rows_of(size, out)
            image = _pass(image, rows, bits, axis)
    return image


def _exact(image, h, w, name):
    rows = [
        [(first, _rounded(weights, 22)) for first, weights in filter_weights(name, size, out)]
        for size, out in ((image.shape[0], h), (image.shape[1], w))
    ]
    pixels = image.astype(np.int64)
    across = np.zeros((image.shape[0], w, image.shape[2]), np.int64)
    for i, (first, weights) in enumerate(rows[1]):
        for j, k in enumerate(weights):
            across[:, i] += k * pixels[:, first + j]
    total = np.zeros((h, w, image.shape[2]), np.int64)
    for i, (first, weights) in enumerate(rows[0]):
        for j, k in enumerate(weights):
            total[i] += k * across[first + j]
    whole, rest = total >> 44, total & ((1 << 44) - 1)
    half = 1 << 43
    up = (rest > half) | ((rest == half) & (whole % 2 == 1))
    return np.clip(whole + up, 0, 255).astype(np.uint8)


# ---- OpenCV --------------------------------------------------------------------------------------


def _cv_scale(size, out):
    return 1.0 / (out / size)


def _cv_linear_rows(size, out, columns, enlarged_area):
    """Return ((pixel, pixel), (weight, weight)) of each output pixel."""
    scale, f32 = _cv_scale(size, out), np.float32
    rows = []
    for i in range(out):
        if enlarged_area:
            s = math.floor(i * scale)
            f = f32((i + 1) - (s + 1) * (out / size))
            f = f32(0) if f <= 0 else f32(f - np.floor(f))
        else:
            at = f32((i + 0.5) * scale - 0.5)
            s = math.floor(at)
            f = f32(at - f32(s))
        if columns and s < 0:
            s, f = 0, f32(0)
        if columns and s >= size - 1:
            s, f = size - 1, f32(0)
        weights = (int(np.rint(f32(f32(1) - f) * f32(2048))), int(np.rint(f * f32(2048))))
        rows.append(((min(max(s, 0), size - 1), min(max(s + 1, 0), size - 1)), weights))
    return rows


def _cv_linear(image, h, w, enlarged_area=False):
    columns = _cv_linear_rows(image.shape[1], w, True, enlarged_area)
    lines = _cv_linear_rows(image.shape[0], h, False, enlarged_area)
    pixels = image.astype(np.int64)
    across = np.stack([a * pixels[:, s] + b * pixels[:, t] for (s, t), (a, b) in columns], axis=1)
    out = [
        (((a * (across[s] >> 4)) >> 16) + ((b * (across[t] >> 4)) >> 16) + 2) >> 2
        for (s, t), (a, b) in lines
    ]
    return np.clip(np.stack(out), 0, 255).astype(np.uint8)


def _cv_exact_rows(size, out):
    rows = []
    for i in range(out):
        at = (i + 0.5) * _cv_scale(size, out) - 0.5
        s = math.floor(at)
        if s < 0 or s >= size - 1:
            s = min(max(s, 0), size - 1)
            rows.append(((s, s), (256, 0)))
        else:
            c = int(np.rint(256 * (at - s)))
            rows.append(((s, s + 1), (256 - c, c)))
    return rows


def _cv_linear_exact(image, h, w):
    pixels = image.astype(np.int64)
    across = np.stack(
        [
            a * pixels[:, s] + b * pixels[:, t]
            for (s, t), (a, b) in _cv_exact_rows(image.shape[1], w)
        ],
        axis=1,
    )
    out = [
        (a * across[s] + b * across[t] + (1 << 15)) >> 16
        for (s, t), (a, b) in _cv_exact_rows(image.shape[0], h)
    ]
    return np.clip(np.stack(out), 0, 255).astype(np.uint8)


def _cv_area_cells(size, out):
    scale, f32 = _cv_scale(size, out), np.float32
    rows = []
    for i in range(out):
        a = i * scale
        b = a + scale
        cell = min(scale, size - a)
        first, last = math.ceil(a), min(math.floor(b), size - 1)
        first = min(first, last)
        taps = []
        if first - a > 1e-3:
            taps.append((first - 1, f32((first - a) / cell)))
        taps += [(s, f32(1.0 / cell)) for s in range(first, last)]
        if b - last > 1e-3:
            taps.append((last, f32(min(min(b - last, 1.0), cell) / cell)))
        rows.append(taps)
    return rows


def _cv_area(image, h, w):
    height, width, channels = image.shape
    down, across = _cv_scale(height, h), _cv_scale(width, w)
    if height < h or width < w:
        return _cv_linear(image, h, w, enlarged_area=True)
    whole_y, whole_x = int(np.rint(down)), int(np.rint(across))
    if abs(down - whole_y) < 2.0**-52 and abs(across - whole_x) < 2.0**-52:
        blocks = image.astype(np.int64).reshape(h, whole_y, w, whole_x, channels)
        total = blocks.sum(axis=(1, 3))
        if whole_y == whole_x == 2:
            return ((total + 2) >> 2).astype(np.uint8)
        share = np.float32(1.0) / np.float32(whole_x * whole_y)
        return np.rint(total.astype(np.float32) * share).astype(np.uint8)
    f32 = np.float32
    lines = np.zeros((height, w, channels), f32)
    for i, taps in enumerate(_cv_area_cells(width, w)):
        for s, k in taps:
            lines[:, i] = lines[:, i] + image[:, s].astype(f32) * k
    out = np.zeros((h, w, channels), f32)
    for i, taps in enumerate(_cv_area_cells(height, h)):
        for s, k in taps:
            out[i] = out[i] + lines[s] * k
    return np.clip(np.rint(out), 0, 255).astype(np.uint8)


# ---- the whole operation -------------------------------------------------------------------------


def resize(image, h, w, rule="pillow", filter="bilinear"):  # noqa: A002
    """Return an image resized by a rule."""
    height, width = image.shape[:2]
    if rule == "opencv":
        if filter == "linear_exact":
            return _cv_linear_exact(image, h, w)
        halves = (height, width) == (2 * h, 2 * w)
        return _cv_area(image, h, w) if filter == "area" or halves else _cv_linear(image, h, w)
    if rule == "exact":
        return _exact(image, h, w, filter)
    if rule == "torchvision":

        def sixteen(size, out):
            linear = filter == "linear"
            return _sixteen_bits(
                linear_weights(size, out) if linear else filter_weights(filter, size, out)
            )

        return _two_passes(image, h, w, sixteen, False)

    def twenty_two(size, out):
        rows = filter_weights(filter, size, out)
        return [(first, _rounded(weights, 22)) for first, weights in rows], 22

    first = rule == "pillow_13" and height > h and height - h > 2 * (width - w)
    first = first or (rule == "pillow_12" and height > h and height > 100 * width)
    return _two_passes(image, h, w, twenty_two, first)


def fitted(height, width, h, w, fit):
    """Return the size to resize to, and where the output's window or the image's place begins."""
    if fit == "pad":
        ratio = max(width / w, height / h)
        size = (max(int(height / ratio), 1), max(int(width / ratio), 1))
    elif fit == "cover":
        if width * h <= height * w:
            size = (int(w * height / width), w)
        else:
            size = (h, int(h * width / height))
    else:
        size = (h, w)
    return size


def _bytes(x):
    return np.clip(x, 0, 255).astype(np.uint8)


def _fma(a, b, c):
    # Exact in longdouble for these sizes of numbers: 24 + 24 bits and a nearby sum.
    product = np.asarray(a, np.longdouble) * np.asarray(b, np.longdouble)
    return (product + np.asarray(c, np.longdouble)).astype(np.float32)


def gray(image):
    r, g, b = (image[..., c].astype(np.float32) for c in range(3))
    f32 = np.float32
    return np.floor(_fma(b, f32(0.114), _fma(g, f32(0.587), r * f32(0.2989))))


def turned_hue(image, turn):
    """Return an image by torchvision's formulas of adjust_hue, each rounded to f32."""
    x = image.astype(np.float32) * np.float32(1 / 255)
    most, least = x.max(-1), x.min(-1)
    one = np.float32(1)
    s = (most - least) / np.where(most == least, one, most)
    divisor = np.where(most == least, one, most - least)
    rc, gc, bc = np.moveaxis((most[..., None] - x) / divisor[..., None], -1, 0)
    red, green = most == x[..., 0], most == x[..., 1]
    h = np.where(red, bc - gc, np.where(green, rc + np.float32(2) - bc, gc + np.float32(4) - rc))
    h = np.fmod(h * np.float32(1 / 6) + one, one)
    h = np.fmod(h + np.float32(turn), one)
    h = np.where(h < 0, h + one, h)
    i = np.floor(h * np.float32(6))
    f = h * np.float32(6) - i
    p, q, t = (one - s) * most, (one - s * f) * most, (s * f + (one - s)) * most
    i = i.astype(int) % 6
    chosen = [(most, t, p), (q, most, p), (p, most, t), (p, q, most), (t, p, most), (most, p, q)]
    values = [np.choose(i, [each[c] for each in chosen]) for c in range(3)]
    return (np.stack(values, -1) * np.float32(255.999)).astype(np.uint8)


def color(image, factors, order=(0, 1, 2, 3)):
    """Return an image after the steps of ColorJitter."""
    for step in order:
        f = float(factors[step])
        if math.isnan(f):
            continue
        factor, other = np.float32(f), np.float32(1.0 - f)
        x = image.astype(np.float32)
        if step == 0:
            image = _bytes(x * factor)
        elif step == 1:
            luma = gray(image) if image.shape[-1] == 3 else x
            mean = np.float32(float(int(luma.sum(dtype=np.float64))) / float(luma.size))
            image = _bytes(_fma(mean, other, x * factor))
        elif step == 3 and image.shape[-1] == 3:
            image = turned_hue(image, factor)
        elif image.shape[-1] == 3:
            image = _bytes(_fma(gray(image)[..., None], other, x * factor))
    return image


def images(
    frame, h, w, *, box=None, rule="pillow", filter="bilinear", fit="stretch",  # noqa: A002
    anchor="center", pad=(0, 0, 0, 0), flip=0, factors=None, order=(0, 1, 2, 3), color_first=False,
):  # fmt: skip
    """Return one image [h,w,C] of uint8; ``frame`` None gives the padding."""
    channels = frame.shape[-1]
    if factors is not None and color_first:
        frame = color(frame, factors, order)
    if box is not None:
        y, x, height, width = box
        frame = frame[y : y + height, x : x + width]
    rh, rw = fitted(*frame.shape[:2], h, w, fit)
    image = resize(frame, rh, rw, rule, filter)
    if fit == "cover":
        y, x = (rh - h) // 2, (rw - w) // 2
        image = image[y : y + h, x : x + w]
    if flip & 1:
        image = image[:, ::-1]
    if flip & 2:
        image = image[::-1]
    if factors is not None and not color_first:
        image = color(image, factors, order)
    out = np.empty((h, w, channels), np.uint8)
    out[:] = np.asarray(pad[:channels], np.uint8)
    room = (h - image.shape[0], w - image.shape[1])
    y, x = [{"center": r // 2, "start": 0, "end": r}[anchor] for r in room]
    out[y : y + image.shape[0], x : x + image.shape[1]] = image
    return out


# ---- draws ---------------------------------------------------------------------------------------


def philox(counter, key):
    """Return the four words of Philox4x32-10."""
    low = 0xFFFFFFFF
    c, k = list(counter), list(key)
    for i in range(10):
        if i > 0:
            k = [(k[0] + 0x9E3779B9) & low, (k[1] + 0xBB67AE85) & low]
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & low, (a >> 32) ^ c[3] ^ k[1], a & low]
    return c


def _unit(word):
    return (word >> 8) * 2.0**-24


def _below(word, n):
    return (word * n) >> 32


def draws(sample, seed=0, epoch=0, camera=0, *, frame=(0, 0), crop=None, flip=0.0, ranges=()):
    """Return (box, flip, colours, order); ``crop`` is ("fixed", h, w), ("fraction", f),
    ("area", area, ratio) or None.
    """
    low = 0xFFFFFFFF

    def words(purpose):
        counter = (sample & low, sample >> 32 & low, epoch & low, camera << 8 | purpose)
        return philox(counter, (seed & low, seed >> 32 & low))

    height, width = frame
    box = (0, 0, height, width)
    if crop is not None and crop[0] != "area":
        if crop[0] == "fixed":
            h, w = crop[1:]
        else:
            h, w = max(int(crop[1] * height), 1), max(int(crop[1] * width), 1)
        x = words(0)
        box = (_below(x[0], height - h + 1), _below(x[1], width - w + 1), h, w)
    elif crop is not None:
        box = _area_box(words, height, width, *crop[1:])
    x = words(1)
    flipped = int(_unit(x[0]) < flip)
    order = [0, 1, 2, 3]
    for i in (3, 2, 1):
        j = _below(x[4 - i], i + 1)
        order[i], order[j] = order[j], order[i]
    x = words(2)
    colors = [
        math.nan if r is None else float(np.float32(r[0] + _unit(x[i]) * (r[1] - r[0])))
        for i, r in enumerate(ranges)
    ]
    return box, flipped, colors, order


def _area_box(words, height, width, area, ratio):
    logs = [math.log(r) for r in ratio]
    for attempt in range(10):
        x = words(3 + attempt)
        target = (height * width) * (area[0] + _unit(x[0]) * (area[1] - area[0]))
        aspect = math.exp(logs[0] + _unit(x[1]) * (logs[1] - logs[0]))
        w, h = round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))
        if 0 < w <= width and 0 < h <= height:
            return (_below(x[2], height - h + 1), _below(x[3], width - w + 1), h, w)
    shape = width / height
    h, w = height, width
    if shape < ratio[0]:
        h = min(max(round(width / ratio[0]), 1), height)
    elif shape > ratio[1]:
        w = min(max(round(height * ratio[1]), 1), width)
    return ((height - h) // 2, (width - w) // 2, h, w)
