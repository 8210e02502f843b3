/*
 * Python's signal handlers, such as the one for Ctrl-C, during long calls.
 *
 * They run on the main thread, and only while it holds the GIL, which a call has released. The
 * library polls for signals during a call, and each poll takes the GIL for a moment.
 */
#ifndef ROBOCACHE_BINDINGS_SIGNALS_H
#define ROBOCACHE_BINDINGS_SIGNALS_H

#include <Python.h>
#include <robocache/robocache.h>

static unsigned long signal_thread; /* the thread that runs handlers; written under the GIL */
static PyThreadState* signal_state; /* of that thread while it is in a call */

/* Releases the GIL for a call. */
static PyThreadState* leavePython(void) {
  const int handles_signals = PyThread_get_thread_ident() == signal_thread;
  PyThreadState* const state = PyEval_SaveThread();
  if (handles_signals) signal_state = state;
  return state;
}

/* Other threads do not poll: they would wait for the GIL without need. */
static int32_t pollSignals(void* unused) {
  (void)unused;
  if (PyThread_get_thread_ident() != signal_thread) return 0;
  PyThreadState* const state = signal_state;
  PyEval_RestoreThread(state);
  const int32_t raised = PyErr_CheckSignals() != 0;
  PyEval_SaveThread();
  signal_state = state; /* a handler may itself have made calls */
  return raised;
}

static void handleSignalsOn(unsigned long thread) { signal_thread = thread; }

static rbcStatus_t watchSignals(rbcContext_t context) {
  return rbcContextSetCancelCallback(context, pollSignals, NULL);
}

#endif /* ROBOCACHE_BINDINGS_SIGNALS_H */
