/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Implements response bodies over memory and over chunks of large files, with adaptive read-ahead.
 *
 * A chunked body holds at most two chunks: the one being sent and one read ahead. It has at most
 * one READ in flight, so chunks arrive in order. It reads ahead only after half of the current
 * chunk was sent, so that a stalled client pins one chunk, not two.
 *
 * A body that sends little between two rests is slow. It requests small chunks, and reads ahead
 * only when one or two bursts would use up the current one. So it holds one small chunk most of the
 * time, two at most, and a burst rarely finds none. It keeps its small chunk while it rests:
 * reading 32 KiB again for every 3 KiB sent costs more than the memory.
 */
#include "http/files/file_body.h"

#include <limits.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "telem/counters_http.h"

/* A body that sends at most this much between two rests is slow: a small chunk lasts for four such
 * bursts, and 4 MiB/s need 500 of them a second. */
#define SLOW_BURST_BYTES (8u * 1024u)
/* Read-ahead limit of one body, in units of NJ_CHUNK_BYTES: 2 MiB. At 1 GB/s that covers a read of
 * 2 ms by a busy disk. */
#define READAHEAD_MAX    8u
/* After this many timely chunks the read-ahead shrinks by one, until a chunk is late. */
#define READAHEAD_DECAY  64u
/* Before this many bytes a body is not classified as slow or fast. */
#define FIRST_BYTES      (4u * NJ_CHUNK_SMALL_BYTES)

struct bytes_body {
    struct nj_body body;
    struct nj__file_bodies *files;
    struct nj_ref *ref;
    const uint8_t *data;
    uint64_t n_left;
};

struct chunk_body {
    struct nj_body body,
        *outer; /* `outer` is the body to wake: this one or the one that wraps it */
    struct nj__file_bodies *files;
    struct nj_file_object *object;
    struct nj_file_chunk *current, *ahead; /* the first that is not NULL has the byte at `next` */
    uint64_t next, end;   /* offsets in the object: next byte to send; past the last byte */
    uint64_t n_requested; /* bytes requested so far: selects the chunk size */
    uint64_t rested_at;   /* `next` at the last rest */
    uint64_t burst_bytes; /* estimate of bytes sent between two rests; 0: none yet */
    uint32_t n_ahead;     /* chunks to have ready besides `ahead` */
    uint32_t n_timely;    /* timely chunks since `n_ahead` changed */
    const void *client;
    struct nj__file_job *reading;
    struct nj_list starved;
    bool failed;
    bool waiting; /* peek returned no bytes: wake the waiter */
};

bool nj__file_bodies_init(struct nj__file_bodies *f, const struct nj_file_server_config *config)
{
    *f = (struct nj__file_bodies){
        .file_ops = config->files,
        .counters = config->txns->counters,
        .wake = config->txns->events->wake,
    };
    nj_list_init(&f->starved);
    return nj_pool_init(&f->jobs, sizeof(struct nj__file_job), 2 * config->exchanges_max) &&
           nj_pool_init(&f->bytes_bodies, sizeof(struct bytes_body), NJ_BYTES_BODIES_MAX) &&
           nj_pool_init(&f->chunk_bodies, sizeof(struct chunk_body), config->exchanges_max);
}

void nj__file_bodies_fini(struct nj__file_bodies *f)
{
    NJ_ASSERT(f->jobs_out == 0);
    NJ_ASSERT(f->jobs.n_used == 0 && f->bytes_bodies.n_used == 0 && f->chunk_bodies.n_used == 0);
    NJ_ASSERT(f->parts_bodies.n_used == 0);
    nj_pool_fini(&f->parts_bodies);
    nj_pool_fini(&f->jobs);
    nj_pool_fini(&f->bytes_bodies);
    nj_pool_fini(&f->chunk_bodies);
}

struct nj__file_job *nj__file_job_take(struct nj__file_bodies *f)
{
    struct nj__file_job *job = nj_pool_take(&f->jobs);
    if (!job)
        return NULL;
    nj_list_init(&job->pending);
    nj_list_init(&job->waiters);
    return job;
}

bool nj__file_job_submit(struct nj__file_bodies *f, struct nj__file_job *job)
{
    enum nj_file_op op = job->file.op;

    f->jobs_out++;
    if (!f->file_ops->submit(f->file_ops->ctx, &job->file)) {
        f->jobs_out--;
        return false;
    }
    nj_count(f->counters, op == NJ_FILE_READ ? NJ_C_file_reads : NJ_C_file_opens);
    return true;
}

bool nj__file_job_withdraw(struct nj__file_bodies *f, struct nj__file_job *job)
{
    if (!f->file_ops->withdraw || !f->file_ops->withdraw(f->file_ops->ctx, &job->file))
        return false;
    f->jobs_out--;
    return true;
}

void nj__file_job_put(struct nj__file_bodies *f, struct nj__file_job *job)
{
    nj_pool_put(&f->jobs, job);
}

/* The size of a slice: nj_body.peek returns it as an int. */
static uint32_t slice_bytes(uint64_t n_max, uint64_t n_left)
{
    return (uint32_t)nj_min_u64(nj_min_u64(n_max, n_left), INT_MAX);
}

/* --- bytes in memory --- */

static int bytes_peek(struct nj_body *body, uint32_t n_max, struct nj_slice *out)
{
    struct bytes_body *b = nj_container_of(body, struct bytes_body, body);

    *out = (struct nj_slice){b->data, slice_bytes(n_max, b->n_left), b->ref};
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

    nj_ref_put(b->ref);
    nj_pool_put(&b->files->bytes_bodies, b);
}

static const struct nj_body_ops bytes_ops = {
    .peek = bytes_peek,
    .advance = bytes_advance,
    .remaining = bytes_remaining,
    .close = bytes_close,
};

/* Makes a body over bytes that `ref` keeps alive; takes a reference. NULL: none left. */
static struct nj_body *body_of_bytes(struct nj__file_bodies *f, const uint8_t *data,
                                     uint64_t n_bytes, struct nj_ref *ref)
{
    struct bytes_body *b = nj_pool_take(&f->bytes_bodies);
    if (!b)
        return NULL;
    *b = (struct bytes_body){{.ops = &bytes_ops}, f, ref, data, n_bytes};
    nj_ref_take(ref);
    return &b->body;
}

/* --- chunks --- */

/* A body that sends more than a small chunk without a rest is not slow. */
static bool is_slow(const struct chunk_body *b)
{
    return b->burst_bytes > 0 && b->burst_bytes <= SLOW_BURST_BYTES &&
           b->next - b->rested_at <= NJ_CHUNK_SMALL_BYTES;
}

/* Updates the estimate with a burst of `n_bytes`. An increase counts by a quarter: the scheduler
 * may have been late. */
static void update_burst(struct chunk_body *b, uint64_t n_bytes)
{
    if (b->burst_bytes == 0 || n_bytes < b->burst_bytes)
        b->burst_bytes = n_bytes;
    else
        b->burst_bytes += (n_bytes - b->burst_bytes) / 4;
}

/* The first chunks are small: a client that opens many streams and reads little of each pins little
 * memory. */
static uint32_t next_size(const struct chunk_body *b)
{
    bool small = b->n_requested < FIRST_BYTES || is_slow(b);
    return small ? NJ_CHUNK_SMALL_BYTES : NJ_CHUNK_BYTES;
}

static uint64_t end_of(const struct nj_file_chunk *c)
{
    return c->offset + c->n_bytes;
}

static bool covers(const struct nj_file_chunk *c, uint64_t offset)
{
    return offset >= c->offset && offset < end_of(c);
}

static void drop_chunk(struct nj_file_chunk **c)
{
    if (*c)
        nj_ref_put(&(*c)->ref);
    *c = NULL;
}

/* Requests the chunk after the current one, unless one is in flight or none follows. False:
 * refused. If the job completes at once, `ahead` is set or the body has an error on return. */
static bool request_chunk(struct chunk_body *b)
{
    uint64_t offset = b->current ? end_of(b->current) : b->next;

    if (b->failed || b->reading || b->ahead || offset >= b->end)
        return true;
    struct nj__file_job *job = nj__file_job_take(b->files);
    if (!job)
        return false;
    uint32_t n_bytes = slice_bytes(b->end - offset, next_size(b));
    job->file.op = NJ_FILE_READ;
    job->file.object = b->object;
    job->file.offset = offset;
    job->file.n_bytes = n_bytes;
    job->file.n_ahead = n_bytes > NJ_CHUNK_SMALL_BYTES ? b->n_ahead : 0;
    job->file.end = b->end;
    job->file.was_read = false;
    job->file.owner = b;
    job->file.client = b->client;
    nj_ref_take(&b->object->ref);
    b->reading = job;
    if (nj__file_job_submit(b->files, job)) {
        b->n_requested += n_bytes;
        return true;
    }
    b->reading = NULL;
    nj_ref_put(&b->object->ref);
    nj__file_job_put(b->files, job);
    return false;
}

static void wake(struct chunk_body *b)
{
    struct nj__file_bodies *f = b->files;

    if (!b->waiting)
        return;
    b->waiting = false;
    f->wake(b->outer->waiter);
}

/* Adapts the read-ahead when a chunk arrives. It grows when the body could have sent but waited for
 * the disk. A body limited by its client or its rate never waits. */
static void update_readahead(struct chunk_body *b, bool was_read)
{
    bool was_late = was_read && b->waiting && b->n_requested > FIRST_BYTES && !is_slow(b);

    if (was_late)
        b->n_ahead += b->n_ahead < READAHEAD_MAX;
    else if (++b->n_timely >= READAHEAD_DECAY)
        b->n_ahead -= b->n_ahead > 0;
    else
        return;
    b->n_timely = 0;
}

void nj__body_read_done(struct nj__file_bodies *f, struct nj__file_job *job)
{
    struct chunk_body *b = job->file.owner;
    struct nj_file_chunk *chunk = job->file.chunk;
    bool ok = job->file.result == NJ_FILE_OK && chunk && covers(chunk, job->file.offset);
    bool was_read = job->file.was_read;

    nj_ref_put(&job->file.object->ref);
    nj__file_job_put(f, job);
    if (chunk && (!ok || !b)) {
        nj_ref_put(&chunk->ref);
        chunk = NULL;
    }
    if (!b)
        return;
    NJ_ASSERT(b->reading == job && !b->ahead);
    b->reading = NULL;
    b->ahead = chunk;
    b->failed = !ok;
    update_readahead(b, was_read);
    wake(b);
}

/* A READ is refused only while the queue is full. Then some job will leave the queue, and this
 * function is called. If no job is in flight it would wait for ever: the body fails instead. */
void nj__file_bodies_retry_reads(struct nj__file_bodies *f)
{
    if (f->retrying) /* a job completed at once: the loop below is further up the stack */
        return;
    f->retrying = true;
    while (!nj_list_empty(&f->starved)) {
        struct chunk_body *b = nj_container_of(f->starved.next, struct chunk_body, starved);
        nj_list_del(&b->starved);
        if (request_chunk(b)) {
            if (!b->reading)
                wake(b);
            continue;
        }
        if (f->jobs_out > 0) {
            nj_list_push_back(f->starved.next, &b->starved); /* at the front */
            break;
        }
        b->failed = true;
        wake(b);
    }
    f->retrying = false;
}

/* The body has no bytes: request a chunk; it may be there at once. */
static void request_or_queue(struct chunk_body *b)
{
    if (nj_list_linked(&b->starved) || request_chunk(b))
        return;
    if (b->files->jobs_out > 0)
        nj_list_push_back(&b->files->starved, &b->starved);
    else
        b->failed = true;
}

/* Bytes of the current chunk still to be sent. */
static uint64_t current_left(const struct chunk_body *b)
{
    uint64_t end = end_of(b->current);

    NJ_ASSERT(covers(b->current, b->next));
    return (end < b->end ? end : b->end) - b->next;
}

/* True if the next chunk is to be requested. */
static bool is_readahead_due(const struct chunk_body *b, uint64_t n_left)
{
    return n_left <= (is_slow(b) ? b->burst_bytes + SLOW_BURST_BYTES : b->current->n_bytes / 2);
}

static int chunk_peek(struct nj_body *body, uint32_t n_max, struct nj_slice *out)
{
    struct chunk_body *b = nj_container_of(body, struct chunk_body, body);

    if (!b->current && !b->ahead)
        request_or_queue(b);
    if (!b->current) {
        b->current = b->ahead;
        b->ahead = NULL;
    }
    if (!b->current) {
        b->waiting = !b->failed;
        return b->failed ? -1 : 0;
    }
    struct nj_file_chunk *c = b->current;
    uint64_t n_left = current_left(b);
    *out = (struct nj_slice){c->bytes + (b->next - c->offset), slice_bytes(n_max, n_left), &c->ref};
    return (int)out->n_bytes;
}

static void chunk_advance(struct nj_body *body, uint32_t n_bytes)
{
    struct chunk_body *b = nj_container_of(body, struct chunk_body, body);
    uint64_t n_left = current_left(b);

    NJ_ASSERT(b->current && n_bytes <= n_left);
    n_left -= n_bytes;
    if (is_readahead_due(b, n_left))
        (void)request_chunk(b); /* if refused, peek requests it when it is needed */
    b->next += n_bytes;
    if (n_left == 0)
        drop_chunk(&b->current);
}

static uint64_t chunk_remaining(const struct nj_body *body)
{
    const struct chunk_body *b = nj_container_of(body, struct chunk_body, body);

    return b->end - b->next;
}

/* A body that became slow releases its large chunks and requests a small one at once, for the next
 * burst. This happens once, not at each rest. */
static void chunk_rest(struct nj_body *body)
{
    struct chunk_body *b = nj_container_of(body, struct chunk_body, body);

    if (b->next > b->rested_at) {
        update_burst(b, b->next - b->rested_at);
        b->rested_at = b->next;
    }
    if (is_slow(b))
        b->n_ahead = 0;
    if (!is_slow(b) || b->reading)
        return;
    if (b->ahead && b->ahead->n_bytes > NJ_CHUNK_SMALL_BYTES)
        drop_chunk(&b->ahead);
    if (b->ahead || !b->current || b->current->n_bytes <= NJ_CHUNK_SMALL_BYTES)
        return;
    drop_chunk(&b->current);
    (void)request_chunk(b);
}

/* Abandons the READ in flight. Its result, if any, is dropped. */
static void abandon(struct chunk_body *b)
{
    struct nj__file_job *job = b->reading;

    job->file.owner = NULL;
    if (!nj__file_job_withdraw(b->files, job))
        return;
    nj_ref_put(&job->file.object->ref);
    nj__file_job_put(b->files, job);
}

static void chunk_close(struct nj_body *body)
{
    struct chunk_body *b = nj_container_of(body, struct chunk_body, body);

    if (b->reading)
        abandon(b);
    nj_list_del(&b->starved);
    drop_chunk(&b->current);
    drop_chunk(&b->ahead);
    nj_ref_put(&b->object->ref);
    nj_pool_put(&b->files->chunk_bodies, b);
}

static const struct nj_body_ops chunk_ops = {
    .peek = chunk_peek,
    .advance = chunk_advance,
    .remaining = chunk_remaining,
    .close = chunk_close,
    .rest = chunk_rest,
};

struct nj_body *nj__range_body_new(struct nj__file_bodies *f, struct nj_file_object *object,
                                   struct nj_range range, const void *client)
{
    if (object->bytes)
        return body_of_bytes(f, object->bytes + range.first, range.n_bytes, &object->ref);
    struct chunk_body *b = nj_pool_take_raw(&f->chunk_bodies);
    if (!b)
        return NULL;
    *b = (struct chunk_body){
        .body.ops = &chunk_ops,
        .outer = &b->body,
        .files = f,
        .object = object,
        .next = range.first,
        .rested_at = range.first,
        .end = range.first + range.n_bytes,
        .client = client,
    };
    nj_list_init(&b->starved);
    nj_ref_take(&object->ref);
    return &b->body;
}

void nj__body_set_range(struct nj_body *body, struct nj_file_object *object, struct nj_range range)
{
    NJ_ASSERT(body->ops->remaining(body) == 0);
    if (body->ops == &chunk_ops) {
        struct chunk_body *c = nj_container_of(body, struct chunk_body, body);
        c->next = c->rested_at = range.first;
        c->end = range.first + range.n_bytes;
        return;
    }
    struct bytes_body *b = nj_container_of(body, struct bytes_body, body);
    b->data = object->bytes + range.first;
    b->n_left = range.n_bytes;
}

void nj__body_set_outer(struct nj_body *body, struct nj_body *outer)
{
    if (body->ops == &chunk_ops)
        nj_container_of(body, struct chunk_body, body)->outer = outer;
}
