/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cycles of a shard per processing stage. One step in NJ_STAGES_PERIOD is measured, at the stage
 * transitions; in other steps each costs a branch. Steps without work are not counted. One writer;
 * any thread may read.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "telem/histogram.h"

/* A measured step reads the cycle counter about ten times, plus once or twice per connection and
 * twice per sent burst. Therefore only one step in this many is measured. */
#define NJ_STAGES_PERIOD 64u

enum nj_stage {
    NJ_STAGE_RX,      /* the device's queue, rings, headers of Ethernet and IP */
    NJ_STAGE_TCP,     /* segments in and out, timers, the send queue */
    NJ_STAGE_H2,      /* frames and HPACK, both ways */
    NJ_STAGE_HANDLER, /* requests: files, routes, limits; results of workers */
    NJ_STAGE_TX,      /* packets to the device */
    NJ_N_STAGES
};

extern const char *const nj_stage_name[NJ_N_STAGES];

struct nj_stages {
    uint64_t (*cycles)(void); /* NULL: no measurements */
    uint64_t since;
    uint32_t n_steps;
    bool on; /* this step is measured */
    enum nj_stage now;
    uint64_t pending[NJ_N_STAGES]; /* of this step */
    _Atomic uint64_t spent[NJ_N_STAGES], n_measured;
    struct nj_histogram step; /* cycles of each measured step */
};

/* Begin a step, in stage RX; end it. `busy`: the step did some work. */
void nj_stages_begin_step(struct nj_stages *s);
void nj_stages_end_step(struct nj_stages *s, bool busy);

/* Switch to stage `next`. Returns the previous stage, so that the caller can switch back. */
static inline enum nj_stage nj_stage(struct nj_stages *s, enum nj_stage next)
{
    enum nj_stage was = s->now;

    if (nj_likely(!s->on))
        return was;
    uint64_t at = s->cycles();
    s->pending[was] += at - s->since;
    s->since = at;
    s->now = next;
    return was;
}
