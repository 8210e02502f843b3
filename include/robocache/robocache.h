/*
 * RoboCache: raw robot recordings into model-ready tensors, on CUDA and on the CPU.
 *
 * The whole C interface. In short:
 *
 *   rbcContext_t context;
 *   rbcContextCreate(NULL, &context);                          // CUDA if usable, else the CPU
 *   rbcResample(context, &values, &times, &query_times, &out, NULL, NULL);
 *   rbcContextDestroy(context);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_H
#define ROBOCACHE_H

#include "base.h"
#include "clouds.h"
#include "context.h"
#include "fuse.h"
#include "images.h"
#include "live.h"
#include "resample.h"
#include "rotations.h"
#include "statistics.h"
#include "store.h"
#include "tensor.h"
#include "tsdf.h"
#include "voxelize.h"
#include "windows.h"

#endif /* ROBOCACHE_H */
