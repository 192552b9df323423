/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bodies. A chunked body holds at most two chunks: the one being sent and one read ahead, and has
 * at most one READ out, so chunks arrive in order. Nothing is read ahead before a send queue's
 * worth, or half, of the current chunk is gone: a peer that stalls early pins one chunk, not two.
 */
#include "http/file_body.h"

#include <limits.h>

#include "base/assert.h"
#include "base/attr.h"
#include "telem/counters.h"

#define FIRST_CHUNK_BYTES (32u * 1024u)

struct bytes_body {
    struct nj_body body;
    struct nj__files *files;
    struct nj_ref *ref;
    const uint8_t *data;
    uint64_t n_left;
};

struct chunk_body {
    struct nj_body body;
    struct nj__files *files;
    struct nj_object *object;
    struct nj_chunk *current, *ahead;
    uint32_t taken_of_current;
    uint64_t taken, asked; /* bytes taken; bytes asked for, of which the last may be on their way */
    struct nj__job *reading;
    struct nj_list starved;
    bool broke;
    bool waiting; /* peek showed nothing: wake the waiter */
};

bool nj__files_init(struct nj__files *f, const struct nj_site_config *config)
{
    *f = (struct nj__files){
        .port = config->files,
        .counters = config->counters,
        .events = config->events,
        .events_ctx = config->events_ctx,
    };
    nj_list_init(&f->starved);
    return nj_pool_init(&f->jobs, sizeof(struct nj__job), 2 * config->exchanges_max) &&
           nj_pool_init(&f->bytes_bodies, sizeof(struct bytes_body), NJ_BYTES_BODIES_MAX) &&
           nj_pool_init(&f->chunk_bodies, sizeof(struct chunk_body), config->exchanges_max);
}

void nj__files_fini(struct nj__files *f)
{
    NJ_ASSERT(f->jobs_out == 0);
    NJ_ASSERT(f->jobs.n_used == 0 && f->bytes_bodies.n_used == 0 && f->chunk_bodies.n_used == 0);
    nj_pool_fini(&f->jobs);
    nj_pool_fini(&f->bytes_bodies);
    nj_pool_fini(&f->chunk_bodies);
}

struct nj__job *nj__job_take(struct nj__files *f)
{
    struct nj__job *job = nj_pool_take(&f->jobs);
    if (!job)
        return NULL;
    nj_list_init(&job->pending);
    nj_list_init(&job->waiters);
    return job;
}

bool nj__job_submit(struct nj__files *f, struct nj__job *job)
{
    enum nj_file_op op = job->file.op;

    f->jobs_out++;
    if (!f->port->submit(f->port->ctx, &job->file)) {
        f->jobs_out--;
        return false;
    }
    nj_count(f->counters, op == NJ_FILE_OPEN ? NJ_C_file_opens : NJ_C_file_reads);
    return true;
}

void nj__job_put(struct nj__files *f, struct nj__job *job)
{
    nj_pool_put(&f->jobs, job);
}

static uint32_t min_u64(uint64_t a, uint64_t b)
{
    uint64_t m = a < b ? a : b;
    return m < INT_MAX ? (uint32_t)m : INT_MAX;
}

/* Bytes in memory. */

static int bytes_peek(struct nj_body *body, uint32_t n_max, struct nj_slice *out)
{
    struct bytes_body *b = nj_container_of(body, struct bytes_body, body);

    *out = (struct nj_slice){b->data, min_u64(n_max, b->n_left), b->ref};
    return (int)out->n_bytes;
}

static void bytes_advance(struct nj_body *body, uint32_t n_bytes)
{
    struct bytes_body *b = nj_container_of(body, struct bytes_body, body);

    NJ_ASSERT(n_bytes <= b->n_left);
    b->data += n_bytes;
    b->n_left -= n_bytes;
}

static uint64_t bytes_remaining(const struct nj_body *body)
{
    return nj_container_of(body, struct bytes_body, body)->n_left;
}

static void bytes_close(struct nj_body *body)
{
    struct bytes_body *b = nj_container_of(body, struct bytes_body, body);

    if (b->ref)
        nj_ref_put(b->ref);
    nj_pool_put(&b->files->bytes_bodies, b);
}

static const struct nj_body_ops bytes_ops = {
    .peek = bytes_peek,
    .advance = bytes_advance,
    .remaining = bytes_remaining,
    .close = bytes_close,
};

struct nj_body *nj__body_of_bytes(struct nj__files *f, const uint8_t *data, uint64_t n_bytes,
                                  struct nj_ref *ref)
{
    struct bytes_body *b = nj_pool_take(&f->bytes_bodies);
    if (!b)
        return NULL;
    *b = (struct bytes_body){{.ops = &bytes_ops}, f, ref, data, n_bytes};
    if (ref)
        nj_ref_take(ref);
    return &b->body;
}

/* Chunks. */

/* The first chunks are small and grow with what was asked for: a peer that opens many streams and
 * takes little of each pins little. */
static uint32_t next_size(const struct chunk_body *b)
{
    uint64_t size = b->asked > FIRST_CHUNK_BYTES ? b->asked : FIRST_CHUNK_BYTES;
    return (uint32_t)min_u64(size, NJ_CHUNK_BYTES);
}

/* Ask for the next chunk, if there is one and none is on its way. False: refused. With a port that
 * answers at once, `ahead` is filled in or the body is broken when this returns. */
static bool ask(struct chunk_body *b)
{
    uint64_t n_left = b->object->size_bytes - b->asked;

    if (b->broke || b->reading || b->ahead || n_left == 0)
        return true;
    struct nj__job *job = nj__job_take(b->files);
    if (!job)
        return false;
    job->file.op = NJ_FILE_READ;
    job->file.object = b->object;
    job->file.offset = b->asked;
    job->file.n_bytes = min_u64(n_left, next_size(b));
    job->file.asker = b;
    nj_ref_take(&b->object->ref);
    b->reading = job;
    b->asked += job->file.n_bytes;
    if (nj__job_submit(b->files, job))
        return true;
    b->asked -= job->file.n_bytes;
    b->reading = NULL;
    nj_ref_put(&b->object->ref);
    nj__job_put(b->files, job);
    return false;
}

static void wake(struct chunk_body *b)
{
    struct nj__files *f = b->files;

    if (!b->waiting)
        return;
    b->waiting = false;
    f->events->on_wake(f->events_ctx, b->body.waiter);
}

void nj__body_read_done(struct nj__files *f, struct nj__job *job)
{
    struct chunk_body *b = job->file.asker;
    struct nj_chunk *chunk = job->file.chunk;
    bool ok = job->file.result == NJ_FILE_OK && chunk && chunk->n_bytes == job->file.n_bytes;

    nj_ref_put(&job->file.object->ref);
    nj__job_put(f, job);
    if (chunk && (!ok || !b)) {
        nj_ref_put(&chunk->ref);
        chunk = NULL;
    }
    if (!b)
        return;
    NJ_ASSERT(b->reading == job && !b->ahead);
    b->reading = NULL;
    b->ahead = chunk;
    b->broke = !ok;
    wake(b);
}

/* A body is refused only while the port is full, so a completion is due and this will be called
 * again. Should none be due, waiting would be for ever: the body breaks. */
void nj__body_retry(struct nj__files *f)
{
    if (f->retrying) /* a port that answers at once: the loop below is further up the stack */
        return;
    f->retrying = true;
    while (!nj_list_empty(&f->starved)) {
        struct chunk_body *b = nj_container_of(f->starved.next, struct chunk_body, starved);
        nj_list_del(&b->starved);
        if (ask(b)) {
            if (!b->reading)
                wake(b);
            continue;
        }
        if (f->jobs_out > 0) {
            nj_list_push_back(f->starved.next, &b->starved); /* in front of all */
            break;
        }
        b->broke = true;
        wake(b);
    }
    f->retrying = false;
}

/* Nothing to show: get a read going, and see whether a prompt port has answered it already. */
static void ask_or_starve(struct chunk_body *b)
{
    if (nj_list_linked(&b->starved) || ask(b))
        return;
    if (b->files->jobs_out > 0)
        nj_list_push_back(&b->files->starved, &b->starved);
    else
        b->broke = true;
}

static int chunk_peek(struct nj_body *body, uint32_t n_max, struct nj_slice *out)
{
    struct chunk_body *b = nj_container_of(body, struct chunk_body, body);

    if (!b->current && !b->ahead)
        ask_or_starve(b);
    if (!b->current) {
        b->current = b->ahead;
        b->ahead = NULL;
        b->taken_of_current = 0;
    }
    if (!b->current) {
        b->waiting = !b->broke;
        return b->broke ? -1 : 0;
    }
    struct nj_chunk *c = b->current;
    *out = (struct nj_slice){c->bytes + b->taken_of_current,
                             min_u64(n_max, c->n_bytes - b->taken_of_current), &c->ref};
    return (int)out->n_bytes;
}

static void chunk_advance(struct nj_body *body, uint32_t n_bytes)
{
    struct chunk_body *b = nj_container_of(body, struct chunk_body, body);

    NJ_ASSERT(b->current && n_bytes <= b->current->n_bytes - b->taken_of_current);
    b->taken_of_current += n_bytes;
    b->taken += n_bytes;
    if (b->taken_of_current >= min_u64(NJ_SENDQ_BYTES_MAX, b->current->n_bytes / 2))
        (void)ask(b); /* refused: peek will ask again when it matters */
    if (b->taken_of_current == b->current->n_bytes) {
        nj_ref_put(&b->current->ref);
        b->current = NULL;
    }
}

static uint64_t chunk_remaining(const struct nj_body *body)
{
    const struct chunk_body *b = nj_container_of(body, struct chunk_body, body);

    return b->object->size_bytes - b->taken;
}

static void chunk_close(struct nj_body *body)
{
    struct chunk_body *b = nj_container_of(body, struct chunk_body, body);

    if (b->reading)
        b->reading->file.asker = NULL; /* its result goes to nobody */
    nj_list_del(&b->starved);
    if (b->current)
        nj_ref_put(&b->current->ref);
    if (b->ahead)
        nj_ref_put(&b->ahead->ref);
    nj_ref_put(&b->object->ref);
    nj_pool_put(&b->files->chunk_bodies, b);
}

static const struct nj_body_ops chunk_ops = {
    .peek = chunk_peek,
    .advance = chunk_advance,
    .remaining = chunk_remaining,
    .close = chunk_close,
};

struct nj_body *nj__body_of_object(struct nj__files *f, struct nj_object *object)
{
    if (object->bytes)
        return nj__body_of_bytes(f, object->bytes, object->size_bytes, &object->ref);
    struct chunk_body *b = nj_pool_take(&f->chunk_bodies);
    if (!b)
        return NULL;
    b->body.ops = &chunk_ops;
    b->files = f;
    b->object = object;
    nj_list_init(&b->starved);
    nj_ref_take(&object->ref);
    return &b->body;
}
