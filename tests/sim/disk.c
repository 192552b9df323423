/* SPDX-License-Identifier: BSD-3-Clause */
#include "disk.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "sim.h"
#include "store/file_reader.h"

struct sim_disk_read {
    struct nj__uring_read read;
    void *user;
    int32_t result;
};

/* nj__uring_open() has no argument for the world */
static struct sim_disk *next_opened;

void nj_sim_disk_init(struct sim_disk *d, struct sim *sim)
{
    *d = (struct sim_disk){.sim = sim};
    nj_prng_init(&d->prng, sim->seed ^ 0xd15c);
    next_opened = d;
}

/* --- the ring --------------------------------------------------------------------------------- */

int nj__uring_open(struct nj__uring **out, uint32_t n_max, const struct nj__arena_memory *memory)
{
    (void)memory;
    NJ_CHECK(n_max <= NJ_FILE_READS_MAX);
    *out = (struct nj__uring *)next_opened;
    return 0;
}

void nj__uring_close(struct nj__uring *r)
{
    NJ_CHECK(((struct sim_disk *)r)->n_under_way == 0);
}

bool nj__uring_has_registered_buffers(const struct nj__uring *r)
{
    (void)r;
    return false;
}

/* Time at which a read submitted now ends. */
static nj_ns serve(struct sim_disk *d, uint32_t n_bytes)
{
    const struct sim_disk_plan *plan = &d->sim->mix.disk;
    nj_ns now = d->sim->now, *slot = &d->free_at[0];

    for (uint32_t i = 1; i < plan->depth; i++)
        if (d->free_at[i] < *slot)
            slot = &d->free_at[i];
    nj_ns at = *slot > now ? *slot : now;
    if (at - plan->slow_at < plan->slow_for)
        at += plan->slow_latency;
    else
        at += plan->latency + (plan->jitter ? nj_prng_next(&d->prng) % plan->jitter : 0);
    if (plan->rate) {
        at = at > d->bytes_until ? at : d->bytes_until;
        at += (nj_ns)n_bytes * NJ_SEC / plan->rate;
        d->bytes_until = at;
    }
    return *slot = at;
}

void nj__uring_read(struct nj__uring *r, const struct nj__uring_read *read, void *user)
{
    struct sim_disk *d = (struct sim_disk *)r;
    struct sim_disk_read *x = malloc(sizeof *x);

    NJ_CHECK(x && d->n_under_way < NJ_FILE_READS_MAX);
    *x = (struct sim_disk_read){.read = *read, .user = user};
    d->n_under_way++;
    d->n_reads++;
    d->n_bytes += read->n_bytes;
    nj_sim_agenda_add(&d->sim->agenda, serve(d, read->n_bytes), SIM_DISK_DONE, x);
}

void nj_sim_disk_done(struct sim *sim, void *read)
{
    struct sim_disk *d = &sim->disk;
    struct sim_disk_read *x = read;
    uint32_t n = x->read.n_bytes;

    if (!sim->calm && nj_sim_chance(&d->prng, sim->mix.disk.cut_short))
        n = nj_prng_below(&d->prng, n);
    if (sim->now - sim->mix.disk.no_memory_at < sim->mix.disk.no_memory_for)
        x->result = -ENOMEM;
    else if (n == 0)
        x->result = -EAGAIN;
    else
        x->result = nj_sim_store_read(sim->store, x->read.fd, x->read.out, n, x->read.offset);
    d->done[d->n_done++] = x;
}

uint32_t nj__uring_submit_and_reap(struct nj__uring *r, struct nj__uring_done *done, uint32_t n)
{
    struct sim_disk *d = (struct sim_disk *)r;
    uint32_t n_taken = d->n_done < n ? d->n_done : n;

    for (uint32_t i = 0; i < n_taken; i++) {
        done[i] = (struct nj__uring_done){d->done[i]->user, d->done[i]->result};
        free(d->done[i]);
    }
    d->n_under_way -= n_taken;
    d->n_done -= n_taken;
    memmove(d->done, d->done + n_taken, d->n_done * sizeof *d->done);
    return n_taken;
}

void nj__uring_mark_asleep(struct nj__uring *r)
{
    (void)r;
    NJ_UNREACHABLE("a reader without a thread does not wait");
}

void nj__uring_wait(struct nj__uring *r)
{
    nj__uring_mark_asleep(r);
}

void nj__uring_wake(struct nj__uring *r)
{
    ((struct sim_disk *)r)->is_woken = true;
}

/* --- the reader's thread ---------------------------------------------------------------------- */

nj_ns nj_sim_reader_next(const struct sim *sim)
{
    const struct sim_disk *d = &sim->disk;
    return d->is_woken || d->n_done > 0 ? d->stepped_at + SIM_STEP_GAP : NJ_NEVER;
}

bool nj_sim_reader_step(struct sim *sim)
{
    struct sim_disk *d = &sim->disk;

    d->stepped_at = sim->now;
    return d->is_woken = nj__file_reader_step(sim->server.reader);
}
