/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The disk of the server's reader (lib/store/file_reader.h), in virtual time, in place of
 * lib/store/io_uring.c. The code of the server decides about the order of READs, shared reads and
 * readahead.
 *
 * `depth` reads are served at once, in order of submission; the others wait. Each takes its
 * latency, and then its bytes pass at `rate`, one read after the other. The disk may be slow for a
 * time. Its results depend on the file (store.h): possibly fewer bytes than requested, -EAGAIN,
 * -ENOMEM or -EIO.
 */
#pragma once

#include "base/limits.h"
#include "base/prng.h"
#include "base/types.h"
#include "store/io_uring.h"

struct sim;

#define SIM_DISK_DEPTH_MAX NJ_FILE_READS_MAX

/* Drawn from a seed. */
struct sim_disk_plan {
    uint32_t depth;        /* 1..SIM_DISK_DEPTH_MAX */
    nj_ns latency, jitter; /* jitter: maximum addition */
    uint64_t rate;         /* bytes per second; 0: unlimited */
    nj_ns slow_latency;    /* in place of both ... */
    nj_ns slow_at, slow_for;
    nj_ns no_memory_at, no_memory_for; /* in this period each read fails with -ENOMEM */
    uint32_t cut_short;                /* probability of a short read or -EAGAIN */
};

struct sim_disk {
    struct sim *sim;
    struct nj_prng prng;
    nj_ns free_at[SIM_DISK_DEPTH_MAX]; /* of each slot of `depth` */
    nj_ns bytes_until;                 /* the bytes of earlier reads have passed by then */
    struct sim_disk_read *done[NJ_FILE_READS_MAX]; /* not polled yet */
    uint32_t n_under_way, n_done;
    bool is_woken; /* the reader has to step */
    nj_ns stepped_at;
    uint64_t n_reads, n_bytes;
};

/* The next ring to be opened belongs to this disk. */
void nj_sim_disk_init(struct sim_disk *d, struct sim *sim);
/* A read has ended. `read` is the argument of the event. */
void nj_sim_disk_done(struct sim *sim, void *read);

/* The reader's thread: the time of its next step, and the step. True: it did some work. */
nj_ns nj_sim_reader_next(const struct sim *sim);
bool nj_sim_reader_step(struct sim *sim);
