/*
 * Python's handlers of signals, such as that of Ctrl-C, during calls that take long.
 *
 * They run on one thread, the main one, and only while it holds the GIL. A call has released it:
 * the library's polls take it back for a moment.
 */
#ifndef ROBOCACHE_BINDINGS_SIGNALS_H
#define ROBOCACHE_BINDINGS_SIGNALS_H

#include <Python.h>
#include <robocache/robocache.h>

static unsigned long signal_thread; /* where handlers run; written under the GIL */
static PyThreadState* signal_state; /* of that thread while it is in a call */

/* Releases the GIL for a call. */
static PyThreadState* leavePython(void) {
  const int handles_signals = PyThread_get_thread_ident() == signal_thread;
  PyThreadState* const state = PyEval_SaveThread();
  if (handles_signals) signal_state = state;
  return state;
}

/* Other threads are not kept: they would wait for a GIL that they have no use for. */
static int32_t pollSignals(void* unused) {
  (void)unused;
  if (PyThread_get_thread_ident() != signal_thread) return 0;
  PyThreadState* const state = signal_state;
  PyEval_RestoreThread(state);
  const int32_t raised = PyErr_CheckSignals() != 0;
  PyEval_SaveThread();
  signal_state = state; /* a handler may have made calls of its own */
  return raised;
}

static void handleSignalsOn(unsigned long thread) { signal_thread = thread; }

static rbcStatus_t watchSignals(rbcContext_t context) {
  return rbcContextSetCancelCallback(context, pollSignals, NULL);
}

#endif /* ROBOCACHE_BINDINGS_SIGNALS_H */
