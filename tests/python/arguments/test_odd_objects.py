"""Objects that are no proper arrays are refused by the argument's name, and never crash."""

import ctypes
import inspect

import numpy as np
import pytest

import robocache as rbc
from dlpack_producers import Producer, new_capsule
from robocache._arguments.frameworks import facts_of

VALUES = np.arange(8.0).reshape(4, 2)
TIMES = np.arange(4.0)
QUERIES = np.array([0.5, 2.25])
POINTS = np.array([[0.5, 0.5, 0.5], [1.5, 0.5, 0.5]])
GRID = {"origin": (0, 0, 0), "voxel_size": 1.0, "shape": (2, 2, 2)}
VOLUME = np.zeros((2, 2, 2), np.float32)


def stream(**arguments):
    return rbc.fuse([rbc.Stream(**arguments)], QUERIES)


def torch_resample(**arguments):
    torch = pytest.importorskip("torch")
    values = torch.tensor(VALUES, requires_grad=True)
    return rbc.torch.resample(values, **arguments)


# Each operation with the arrays that it takes, which its tests replace one by one.
CALLS = {
    "resample": (rbc.resample, {"values": VALUES, "times": TIMES, "query_times": QUERIES}),
    "resample, scaled": (
        rbc.resample,
        {
            "values": VALUES,
            "times": TIMES,
            "query_times": QUERIES,
            "mean": np.zeros(2),
            "std": np.ones(2),
            "out": np.zeros((2, 2)),
        },
    ),
    "resample, padded": (
        rbc.resample,
        {
            "values": VALUES[None],
            "times": TIMES,
            "query_times": QUERIES,
            "lengths": np.array([4]),
            "query_lengths": np.array([2]),
        },
    ),
    "resample, packed": (
        rbc.resample,
        {
            "values": VALUES,
            "times": TIMES,
            "query_times": QUERIES,
            "batch_offsets": np.array([0, 4]),
        },
    ),
    "stream": (stream, {"values": VALUES, "times": TIMES, "mean": np.zeros(2)}),
    "voxelize": (
        rbc.voxelize,
        {
            "points": POINTS,
            "features": POINTS,
            "reduction": "mean",
            "return_num_points_outside": True,
            **GRID,
        },
    ),
    "voxelize_sparse": (rbc.voxelize_sparse, {"points": POINTS, "features": POINTS, **GRID}),
    "voxelize_tsdf": (
        rbc.voxelize_tsdf,
        {
            "points": POINTS,
            "sensors": np.zeros(3),
            "tsdf": VOLUME.copy(),
            "weight": VOLUME.copy(),
            "truncation": 0.5,
            **GRID,
        },
    ),
    "torch.resample": (torch_resample, {"times": TIMES, "query_times": QUERIES, "std": np.ones(2)}),
}
ARGUMENTS = [
    (call, name)
    for call, (_, arguments) in CALLS.items()
    for name, given in arguments.items()
    if isinstance(given, np.ndarray)
]


def refused(call, name, odd):
    """Return the error of an operation with ``odd`` as an argument: one line with its name."""
    operation, arguments = CALLS[call]
    with pytest.raises((TypeError, ValueError)) as caught:
        operation(**{**arguments, name: odd})
    message = str(caught.value)
    assert message.startswith((f"{name}: ", f"streams[0].{name}: ")), message
    assert "\n" not in message
    return message


class Plain:
    """An array that has DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        options.pop("stream", None)
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize(
    "device",
    [(), (1,), None, ("a", 0), (1, "b"), (1, 0, 0), 5, "cpu", {1: 0, 2: 0}, (1.5, 0)],
    ids=repr,
)
@pytest.mark.parametrize(("call", "name"), ARGUMENTS)
def test_a_malformed_device(call, name, device):
    class Odd(Plain):
        def __dlpack_device__(self):
            return device

    message = refused(call, name, Odd(CALLS[call][1][name]))
    assert f"its __dlpack_device__ gave {device!r}, expected two ints: type and id" in message


@pytest.mark.parametrize("member", ["__dlpack__", "__dlpack_device__", "__array_struct__"])
@pytest.mark.parametrize(
    "error", [TypeError, ValueError, AttributeError, RuntimeError, BufferError, NotImplementedError]
)
@pytest.mark.parametrize(("call", "name"), ARGUMENTS)
def test_what_cannot_be_described_says_why(call, name, error, member):
    def broken(self, **options):
        raise error("the sensor is unplugged\nand more")

    is_property = member == "__array_struct__"
    odd = type("Odd", (Plain,), {member: property(broken) if is_property else broken})
    if call == "torch.resample" and (is_property or name == "std"):
        return  # it has torch read its arrays, and std divides by itself
    message = refused(call, name, odd(CALLS[call][1][name]))
    assert name == "std" or message.endswith(": the sensor is unplugged")


@pytest.mark.parametrize("error", [KeyError, ZeroDivisionError])
@pytest.mark.parametrize("member", ["__dlpack__", "__dlpack_device__"])
def test_a_defect_of_its_own_is_passed_on(error, member):
    def broken(self, **options):
        raise error("gone")

    odd = type("Odd", (Plain,), {member: broken})(TIMES)
    with pytest.raises(error, match="^'?gone'?$"):
        rbc.resample(VALUES, odd, QUERIES)


@pytest.mark.parametrize("member", ["__array_struct__", "__dlpack_c_exchange_api__", "__dlpack__"])
def test_a_lack_of_memory_where_a_type_is_examined(member):
    """It is not treated as a lack of this protocol. The next call examines the type again."""

    class Kind(type):
        def __getattribute__(cls, name):
            if name == missing:
                raise MemoryError
            return super().__getattribute__(name)

    class Odd(Plain, metaclass=Kind):
        pass

    missing = member
    odd, context = Odd(TIMES), rbc.Context("cpu")
    with pytest.raises(MemoryError):
        facts_of(odd, "times", context)
    missing = None
    assert facts_of(odd, "times", context)[-1] == (4,)


OTHER_NAME = b"other"  # a capsule keeps the address of its name
NO_CAPSULES = {
    "none": None,
    "number": 5,
    "text": "capsule",
    "other": new_capsule(1, OTHER_NAME, None),
}


@pytest.mark.parametrize("given", NO_CAPSULES.values(), ids=NO_CAPSULES)
@pytest.mark.parametrize(("call", "name"), ARGUMENTS)
def test_no_capsule(call, name, given):
    class NoDLPack(Plain):
        def __dlpack__(self, **options):
            return given

    class NoArrayStruct(Plain):
        __array_struct__ = given

    if call != "torch.resample" and name != "std":
        assert "gave no DLPack capsule" in refused(call, name, NoDLPack(TIMES))
        assert "is not a capsule of the array interface" in refused(
            call, name, NoArrayStruct(TIMES)
        )


class ArrayStruct(ctypes.Structure):
    _fields_ = [
        ("two", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("kind", ctypes.c_char),
        ("item_size", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("descriptor", ctypes.c_void_p),
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"two": 3}, "its __array_struct__ has an unknown version"),
        ({"ndim": -1}, "rank is -1, expected 0 to"),
        ({"ndim": 2**30}, "rank is 1073741824, expected 0 to"),
        ({"item_size": 0}, "dtype is f0, expected a float, integer or bool dtype"),
        ({"item_size": -8}, "dtype is f-8, expected"),
        ({"item_size": 3}, "stride 0 is 8 bytes, expected a multiple of the element's 3"),
        ({"kind": b"O"}, "dtype is O8, expected"),
        ({"shape": None}, "its __array_struct__ lacks the shape or the strides"),
        ({"strides": None}, "its __array_struct__ lacks the shape or the strides"),
        ({"data": None}, "data"),
    ],
)
def test_an_array_struct_that_lies(changes, message):
    extents, strides = (ctypes.c_ssize_t * 1)(4), (ctypes.c_ssize_t * 1)(8)
    facts = {
        "two": 2,
        "ndim": 1,
        "kind": b"f",
        "item_size": 8,
        "flags": 0x700,
        "shape": ctypes.addressof(extents),
        "strides": ctypes.addressof(strides),
        "data": TIMES.ctypes.data,
    }
    right, wrong = ArrayStruct(**facts), ArrayStruct(**{**facts, **changes})

    class Lying(Plain):
        @property
        def __array_struct__(self):
            return new_capsule(ctypes.addressof(self.struct), None, None)

    lying = Lying(TIMES)
    lying.struct = right
    expected = rbc.resample(VALUES, TIMES, QUERIES)
    np.testing.assert_array_equal(rbc.resample(VALUES, lying, QUERIES), expected)
    lying.struct = wrong
    with pytest.raises((TypeError, ValueError), match=f"^times: .*{message}"):
        rbc.resample(VALUES, lying, QUERIES)


def test_a_tensor_without_a_shape():
    producer = Producer(VALUES)
    producer._managed.tensor.shape = None
    with pytest.raises(ValueError, match="^values: has rank 2 and no shape"):
        rbc.resample(producer, TIMES, QUERIES)  # which asks for the shape itself
    with pytest.raises(ValueError, match="^values: has rank 2 and no shape"):
        rbc.resample(producer, TIMES, QUERIES, out=np.zeros((2, 2)))


# ---- classes that report wrong shapes and dtypes -------------------------------------------------


@pytest.mark.parametrize(
    "told", [None, 5, (), (9,), (7, 7), (2, 2, 2, 2), ("a", 2), (2**70, 2)], ids=repr
)
@pytest.mark.parametrize(("call", "name"), ARGUMENTS)
def test_a_shape_that_lies_is_not_believed(call, name, told):
    if call == "torch.resample":
        return  # it has torch read its arrays
    operation, arguments = CALLS[call]
    kind = type("Odd", (np.ndarray,), {"shape": property(lambda self: told)})
    result = operation(**{**arguments, name: arguments[name].view(kind)})
    expected = operation(**arguments)
    for one, other in zip(_arrays(result), _arrays(expected)):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def _arrays(result):
    if isinstance(result, np.ndarray):
        return [result]
    if isinstance(result, tuple):
        return list(result)
    return [
        getattr(result, name) for name in ("coords", "points_per_voxel", "features", "num_voxels")
    ]


@pytest.mark.parametrize("told", [None, 5, "float128", [], np.dtype("U3"), np.float16], ids=repr)
def test_a_dtype_that_lies_is_not_believed(told):
    kind = type("Odd", (np.ndarray,), {"dtype": property(lambda self: told)})
    expected = rbc.resample(VALUES, TIMES, QUERIES)
    for result in (
        rbc.resample(VALUES.view(kind), TIMES, [0.5, 2.25]),
        rbc.resample(VALUES, TIMES.view(kind), [0.5, 2.25]),
        rbc.fuse([rbc.Stream(VALUES.view(kind), TIMES.view(kind))], [0.5, 2.25]),
    ):
        assert np.asarray(result).dtype == np.float64
        np.testing.assert_array_equal(np.asarray(result), expected)
    counted = rbc.voxelize(POINTS.view(kind), reduction="mean", **GRID)
    assert np.asarray(counted).dtype == np.float64


# ---- numbers, names and lists --------------------------------------------------------------------


class NoText:
    def __repr__(self):
        raise RuntimeError("no text")

    __str__ = __repr__


@pytest.mark.parametrize(
    ("call", "name", "given"),
    [
        ("resample", "method", NoText()),
        ("resample", "method", [NoText()]),
        ("resample", "outside", NoText()),
        ("resample", "outside", np.zeros(2)),
        ("resample", "fill_value", NoText()),
        ("resample", "max_gap", NoText()),
        ("resample", "dtype", NoText()),
        ("resample", "mean", [[1.0, [2]], 3]),
        ("resample", "query_times", [[1.0, [2]], 3]),
        ("resample, packed", "batch_offsets", np.float64(1)),
        ("stream", "clock_offset", NoText()),
        ("stream", "clock_offset", 1j),
        ("stream", "clock_offset", np.zeros(2)),
        ("stream", "clock_offset", 10**400),
        ("voxelize", "reduction", np.zeros(2)),
        ("voxelize", "reduction", NoText()),
        ("voxelize", "origin", ("1", 2, 3)),
        ("voxelize", "origin", (NoText(), 2, 3)),
        ("voxelize", "voxel_size", np.array("noon")),
        ("voxelize", "voxel_size", (1, "2", 3)),
        ("voxelize", "shape", (2, 2, NoText())),
        ("voxelize_sparse", "order", np.zeros(2)),
        ("voxelize_sparse", "max_voxels", NoText()),
        ("voxelize_tsdf", "weighting", np.zeros(2)),
    ],
)
def test_numbers_and_names(call, name, given):
    operation, arguments = CALLS[call]
    with pytest.raises((TypeError, ValueError), match=rf"^{name}(\[0\])?: "):
        operation(**{**arguments, name: given})


def test_context_options():
    for name in ("device", "threads", "simd"):
        with pytest.raises((TypeError, ValueError), match=f"^{name}: is a NoText, expected"):
            rbc.Context(**{"device": "cpu", name: NoText()})
        with pytest.raises((TypeError, ValueError), match=f"^{name}: is array"):
            rbc.Context(**{"device": "cpu", name: np.zeros(2)})


def test_tensors_that_torch_cannot_describe():
    torch = pytest.importorskip("torch")
    with pytest.warns(UserWarning):
        nested = torch.nested.nested_tensor([torch.zeros(2, 2), torch.zeros(3, 2)])
    for odd in (nested, torch.zeros(4, 2).to_sparse(), torch.zeros(4, 2, device="meta")):
        for call, name in (("resample", "values"), ("resample", "times"), ("voxelize", "features")):
            refused(call, name, odd)
    operation, arguments = CALLS["voxelize_tsdf"]
    with pytest.raises((TypeError, ValueError), match="^points: "):
        operation(**{**arguments, "points": nested, "tsdf": None, "weight": None})


# ---- outputs that cannot be written to -----------------------------------------------------------


def outputs():
    """Each argument that is written to, of every operation that takes one."""
    two = (2, 2)
    stream = rbc.Stream(VALUES, TIMES)
    points = {"points": POINTS, **GRID}
    volume = {"sensors": np.zeros(3), "truncation": 0.5, **points}
    return {
        "resample": (lambda x: rbc.resample(VALUES, TIMES, QUERIES, out=x), "out", two, "f8"),
        "fuse": (lambda x: rbc.fuse([stream], QUERIES, out=x), "out", two, "f8"),
        "voxelize": (lambda x: rbc.voxelize(out=x, **points), "out", (2, 2, 2), "?"),
        "voxelize_tsdf": (
            lambda x: rbc.voxelize_tsdf(tsdf=x, weight=VOLUME.copy(), **volume),
            "tsdf",
            (2, 2, 2),
            "f4",
        ),
        "voxelize_tsdf's weight": (
            lambda x: rbc.voxelize_tsdf(tsdf=VOLUME.copy(), weight=x, **volume),
            "weight",
            (2, 2, 2),
            "f4",
        ),
    }


def test_every_operation_with_an_output_is_among_these():
    written = {"out", "tsdf", "weight"}
    # voxelize_sparse writes to a whole result.
    for name in ("resample", "fuse", "voxelize", "voxelize_tsdf"):
        for argument in written & set(inspect.signature(getattr(rbc, name)).parameters):
            assert any(
                key.startswith(name) and row[1] == argument for key, row in outputs().items()
            )


@pytest.mark.parametrize("name", ["values", "times", "query_times", "mean", "lengths"])
def test_what_jax_traces_is_refused_with_the_way_out(name):
    jax = pytest.importorskip("jax")
    # A callback gets its arguments on the CPU, so the other arrays must be there too.
    with jax.default_device(jax.devices("cpu")[0]):
        arrays = {
            "values": jax.numpy.ones((2, 3, 1)),
            "times": jax.numpy.arange(3.0),
            "query_times": jax.numpy.array([0.5, 1.5]),
            "mean": jax.numpy.ones(1),
            "lengths": jax.numpy.array([3, 2]),
        }

    def traced(array):
        return rbc.resample(**{**arrays, name: array})

    message = f"^{name}: is traced by JAX .*outside of the traced function, .* jax.pure_callback"
    for transform in (jax.jit, jax.vmap):
        with pytest.raises(TypeError, match=message):
            transform(traced)(arrays[name])

    def called_back(array):
        return jax.pure_callback(traced, jax.ShapeDtypeStruct((2, 2, 1), "float32"), array)

    assert (jax.jit(called_back)(arrays[name]) == traced(arrays[name])).all()


@pytest.mark.parametrize("operation", outputs())
def test_jax_arrays_are_never_written_to(operation):
    jax = pytest.importorskip("jax")
    call, name, shape, dtype = outputs()[operation]
    with jax.enable_x64(True):
        out = jax.numpy.zeros(shape, dtype)
        shared = out + 0
    with pytest.raises(TypeError, match=f"^{name}: is an array of JAX, which cannot be written to"):
        call(out)
    assert not np.asarray(out).any() and not np.asarray(shared).any()

    class Sub(Producer):
        __module__ = "tensorflow.python.framework.ops"

    with pytest.raises(TypeError, match=f"^{name}: is an array of TensorFlow, which cannot be"):
        call(Sub(np.zeros(shape, "f8")))


class Exchange(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("older", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("export_managed", ctypes.c_void_p),
        ("import_managed", ctypes.c_void_p),
        ("borrow", ctypes.c_void_p),
        ("current_stream", ctypes.c_void_p),
    ]


def exchanged(array, flags):
    """An array whose class has DLPack's C functions; one of them lends without any flags."""
    producer = Producer(array, flags=flags)

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
    def export_managed(object, managed):
        managed[0] = ctypes.addressof(producer._managed)
        return 0

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
    def borrow(object, tensor):
        lent = producer._managed.tensor
        ctypes.memmove(tensor, ctypes.addressof(lent), ctypes.sizeof(lent))
        return 0

    functions = [export_managed, borrow, ctypes.PYFUNCTYPE(ctypes.c_int)(lambda: 0)]
    pointers = [ctypes.cast(each, ctypes.c_void_p) for each in functions]
    table = Exchange(1, 3, None, None, pointers[0], None, pointers[1], pointers[2])
    capsule = new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)
    kind = type("Lent", (Plain,), {"__dlpack_c_exchange_api__": capsule})
    made = kind(array)
    kind.kept = made.kept = (producer, functions, table)
    return made


@pytest.mark.parametrize("operation", outputs())
def test_what_is_read_only_is_never_written_to(operation):
    call, name, shape, dtype = outputs()[operation]

    def array():
        return np.zeros(shape, dtype)

    frozen = array()
    frozen.flags.writeable = False
    for out in (frozen, Producer(array(), flags=1), exchanged(array(), 1)):
        with pytest.raises(ValueError, match=f"^{name}: is read-only, expected an array to write"):
            call(out)
        assert not np.asarray(getattr(out, "array", out)).any()
    for out in (array(), Producer(array()), exchanged(array(), 0)):
        call(out)
