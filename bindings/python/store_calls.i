/* Functions of the store whose results are structs. This follows declarations.i. */
%define RBC_STORE_CALL(Name, Python)
%noexception Name;
%rename(Python) Name;
%enddef
RBC_STORE_CALL(trustUsers, StoreParams_trust)
RBC_STORE_CALL(entryGetTrack, rbc_entry_get_track)
RBC_STORE_CALL(entryGetTensor, rbc_entry_get_tensor)
RBC_STORE_CALL(entryGetEpisodes, rbc_entry_get_episodes)
RBC_STORE_CALL(storeList, rbc_store_list)

%inline %{
/* Users whose files count: a list of numbers. */
static PyObject* trustUsers(rbcStoreParams* params, PyObject* uids) {
  const Py_ssize_t count = PySequence_Size(uids);
  if (count < 0) return NULL;
  if (count > RBC_STORE_MAX_TRUSTED) {
    return PyErr_Format(PyExc_ValueError, "trust: has %zd users, expected at most %d", count,
                        RBC_STORE_MAX_TRUSTED);
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* uid = PySequence_GetItem(uids, i);
    params->trusted_uids[i] = uid != NULL ? (uint32_t)PyLong_AsUnsignedLong(uid) : 0;
    Py_XDECREF(uid);
    if (PyErr_Occurred()) return NULL;
  }
  params->num_trusted_uids = (int32_t)count;
  Py_RETURN_NONE;
}

/* (dtype code, dtype bits, shape) */
static PyObject* entryGetTrack(struct rbcEntry* entry, const char* name) {
  rbcTrackInfo info = rbcTrackInfoInit();
  const rbcStatus_t status = rbcEntryGetTrack(entry, name, &info);
  if (status != RBC_STATUS_SUCCESS) {
    raiseStatus(status, rbcGetLastError());
    return NULL;
  }
  PyObject* shape = PyTuple_New(info.ndim);
  for (Py_ssize_t i = 0; i < info.ndim && shape != NULL; ++i) {
    PyTuple_SetItem(shape, i, PyLong_FromLongLong(info.shape[i]));
  }
  return shape == NULL
             ? NULL
             : Py_BuildValue("iiN", (int)info.dtype.code, (int)info.dtype.bits, shape);
}

static PyObject* entryGetTensor(struct rbcEntry* entry, const char* name, int64_t segment) {
  rbcTensor view;
  memset(&view, 0, sizeof view);
  const rbcStatus_t status = rbcEntryGetTensor(entry, name, segment, &view);
  if (status == RBC_STATUS_SUCCESS) return newView(&view);
  raiseStatus(status, rbcGetLastError());
  return NULL;
}

/* (address, number of offsets, stride in bytes) */
static PyObject* entryGetEpisodes(struct rbcEntry* entry) {
  rbcTensor view;
  memset(&view, 0, sizeof view);
  const rbcStatus_t status = rbcEntryGetEpisodes(entry, &view);
  if (status == RBC_STATUS_SUCCESS) {
    char* data = (char*)view.data + view.byte_offset;
    const long long stride = view.strides == NULL ? 1 : (long long)view.strides[0];
    return Py_BuildValue("NLL", PyLong_FromVoidPtr(data), (long long)view.shape[0],
                         stride * (long long)sizeof(int64_t));
  }
  raiseStatus(status, rbcGetLastError());
  return NULL;
}

static PyObject* storeList(struct rbcStore* store) {
  size_t count = 0;
  rbcStoreItem* items = NULL;
  rbcStatus_t status = RBC_STATUS_BUFFER_TOO_SMALL;
  while (status == RBC_STATUS_BUFFER_TOO_SMALL) { /* others may add entries between two calls */
    const size_t room = count + 16;
    free(items);
    items = (rbcStoreItem*)malloc(room * sizeof *items);
    if (items == NULL) return PyErr_NoMemory();
    PyThreadState* thread = leavePython();
    status = rbcStoreList(store, items, room, &count);
    PyEval_RestoreThread(thread);
  }
  PyObject* list = NULL;
  if (status == RBC_STATUS_SUCCESS) {
    list = newItems(items, count);
  } else {
    raiseStatus(status, rbcGetLastError());
  }
  free(items);
  return list;
}
%}
