"""Arrays that speak DLPack and nothing else."""

import ctypes


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("manager", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Producer:
    """An array that speaks DLPack and nothing else, and counts what happens to what it gave out."""

    def __init__(
        self,
        array,
        *,
        versioned=True,
        major=1,
        flags=0,
        null_strides=False,
        lanes=1,
        offset=0,
        device=1,
    ):
        self.array = array
        self.given = []
        self.deleted = 0
        self.asked = []
        self._versioned = versioned
        ndim = array.ndim
        self._shape = (ctypes.c_int64 * ndim)(*array.shape)
        self._strides = (ctypes.c_int64 * ndim)(*(s // array.itemsize for s in array.strides))
        tensor = DLTensor(
            array.ctypes.data - offset,
            device,
            0,
            ndim,
            {"f": 2, "i": 0, "b": 6}[array.dtype.kind],
            8 * array.itemsize,
            lanes,
            self._shape,
            None if null_strides else self._strides,
            offset,
        )
        self._deleter = DELETER(self._delete)
        if versioned:
            self._managed = Versioned(major, 3, None, self._deleter, flags, tensor)
        else:
            self._managed = Legacy(tensor, None, self._deleter)

    def _delete(self, pointer):
        assert pointer == ctypes.addressof(self._managed)
        self.deleted += 1

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        self.asked.append(options)
        name = b"dltensor_versioned" if self._versioned else b"dltensor"
        self.given.append(new_capsule(ctypes.addressof(self._managed), name, None))
        return self.given[-1]
