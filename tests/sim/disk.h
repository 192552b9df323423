/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The disk below the server's reader (lib/store/file_reader.h), in virtual time, in place of
 * lib/store/io_uring.c. So which READ gets its turn, which one joins another one's read, and what
 * is read ahead are decided by the code of the server.
 *
 * `depth` reads are served at once, in the order in which they came; the others wait. Each takes
 * its latency, and then its bytes, which pass one after the other at `rate`. For a while the disk
 * may be slow. What it returns depends on the file (store.h): it may be fewer bytes than were asked
 * for, -EAGAIN, -ENOMEM, or -EIO.
 */
#ifndef NJ_TESTS_SIM_DISK_H
#define NJ_TESTS_SIM_DISK_H

#include "base/limits.h"
#include "base/prng.h"
#include "base/types.h"
#include "store/io_uring.h"

struct sim;

#define SIM_DISK_DEPTH_MAX NJ_FILE_READS_MAX

/* What a seed brings. */
struct sim_disk_plan {
    uint32_t depth;        /* 1..SIM_DISK_DEPTH_MAX */
    nj_ns latency, jitter; /* jitter: at most so much more */
    uint64_t rate;         /* bytes per second; 0: as fast as you like */
    nj_ns slow_latency;    /* instead of both ... */
    nj_ns slow_at, slow_for;
    nj_ns no_memory_at, no_memory_for; /* each read ends with -ENOMEM */
    uint32_t cut_short; /* chance that a part comes, or that it has to be asked for again */
};

struct sim_disk {
    struct sim *sim;
    struct nj_prng prng;
    nj_ns free_at[SIM_DISK_DEPTH_MAX];             /* of each read that is served at once */
    nj_ns bytes_until;                             /* those of earlier reads have passed by then */
    struct sim_disk_read *done[NJ_FILE_READS_MAX]; /* not reaped */
    uint32_t n_under_way, n_done;
    bool is_woken; /* the reader has something to look at */
    nj_ns stepped_at;
    uint64_t n_reads, n_bytes;
};

/* The next ring that is opened is this one's. */
void nj_sim_disk_init(struct sim_disk *d, struct sim *sim);
/* A read has ended. `read` is what the agenda kept. */
void nj_sim_disk_done(struct sim *sim, void *read);

/* The reader's thread: when it has its next step, and the step. True: it had something to do. */
nj_ns nj_sim_reader_next(const struct sim *sim);
bool nj_sim_reader_step(struct sim *sim);

#endif
