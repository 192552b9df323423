/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bodies. A chunked body holds at most two chunks: the one being sent and one read ahead, and has
 * at most one READ out, so chunks arrive in order. Nothing is read ahead before a send queue's
 * worth, or half, of the current chunk is gone: a peer that stalls early pins one chunk, not two.
 *
 * A body that takes little between two rests is slow. It asks for small chunks, and ahead only when
 * a turn or two more would use up the current one: so it holds one small chunk most of the time and
 * two at most, and a turn nearly never finds nothing. It keeps its small chunk while it rests: what
 * it saves to read 32 KiB for every 3 KiB that are sent is worth more than the memory.
 */
#include "http/files/file_body.h"

#include <limits.h>

#include "base/assert.h"
#include "base/attr.h"
#include "telem/counters.h"

/* Taking no more than this between two rests is slow: such turns make a small chunk last for four,
 * and 4 MiB/s need 500 of them a second. */
#define SLOW_TURN_BYTES (8u * 1024u)
/* What may be read ahead for one body, in pieces of NJ_CHUNK_BYTES: 2 MiB. At 1 GB/s that is what
 * is sent while a busy disk takes 2 ms for a read. */
#define AHEAD_MAX       8u
/* After so many pieces that came in time one less is read ahead, until one comes too late. */
#define IN_TIME_MAX     64u
/* Of these nobody knows yet whether there will be rests. */
#define FIRST_BYTES     (4u * NJ_CHUNK_SMALL_BYTES)

struct bytes_body {
    struct nj_body body;
    struct nj__files *files;
    struct nj_ref *ref;
    const uint8_t *data;
    uint64_t n_left;
};

struct chunk_body {
    struct nj_body body, *face; /* who is woken: itself, or whoever stands in front of it */
    struct nj__files *files;
    struct nj_object *object;
    struct nj_chunk *current, *ahead; /* the byte at `next` is in the first one there is */
    uint64_t next, end;               /* offsets in the object: to be taken next; past the last */
    uint64_t asked;                   /* bytes asked for until now: how much to ask for */
    uint64_t rested_at;               /* `next` at the last rest */
    uint64_t turn_bytes; /* about what it takes between two rests; 0: there were none */
    uint32_t n_ahead;    /* pieces that the port shall have ready besides `ahead` */
    uint32_t n_in_time;  /* pieces that came in time since `n_ahead` changed */
    const void *client;
    struct nj__job *reading;
    struct nj_list starved;
    bool broke;
    bool waiting; /* peek showed nothing: wake the waiter */
};

bool nj__files_init(struct nj__files *f, const struct nj_site_config *config)
{
    *f = (struct nj__files){
        .port = config->files,
        .counters = config->txns->counters,
        .wake = config->txns->events->wake,
    };
    nj_list_init(&f->starved);
    return nj_pool_init(&f->jobs, sizeof(struct nj__job), 2 * config->exchanges_max) &&
           nj_pool_init(&f->bytes_bodies, sizeof(struct bytes_body), NJ_BYTES_BODIES_MAX) &&
           nj_pool_init(&f->chunk_bodies, sizeof(struct chunk_body), config->exchanges_max) &&
           nj__parts_init(f, config->exchanges_max);
}

void nj__files_fini(struct nj__files *f)
{
    NJ_ASSERT(f->jobs_out == 0);
    NJ_ASSERT(f->jobs.n_used == 0 && f->bytes_bodies.n_used == 0 && f->chunk_bodies.n_used == 0);
    NJ_ASSERT(f->parts_bodies.n_used == 0);
    nj_pool_fini(&f->parts_bodies);
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
    nj_count(f->counters, op == NJ_FILE_READ ? NJ_C_file_reads : NJ_C_file_opens);
    return true;
}

bool nj__job_withdraw(struct nj__files *f, struct nj__job *job)
{
    if (!f->port->withdraw || !f->port->withdraw(f->port->ctx, &job->file))
        return false;
    f->jobs_out--;
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

    nj_ref_put(b->ref);
    nj_pool_put(&b->files->bytes_bodies, b);
}

static const struct nj_body_ops bytes_ops = {
    .peek = bytes_peek,
    .advance = bytes_advance,
    .remaining = bytes_remaining,
    .close = bytes_close,
};

/* A body over bytes that `ref` keeps alive; takes a reference. NULL: none left. */
static struct nj_body *body_of_bytes(struct nj__files *f, const uint8_t *data, uint64_t n_bytes,
                                     struct nj_ref *ref)
{
    struct bytes_body *b = nj_pool_take(&f->bytes_bodies);
    if (!b)
        return NULL;
    *b = (struct bytes_body){{.ops = &bytes_ops}, f, ref, data, n_bytes};
    nj_ref_take(ref);
    return &b->body;
}

/* Chunks. */

/* One that takes more than a small chunk without a rest is slow no more. */
static bool is_slow(const struct chunk_body *b)
{
    return b->turn_bytes > 0 && b->turn_bytes <= SLOW_TURN_BYTES &&
           b->next - b->rested_at <= NJ_CHUNK_SMALL_BYTES;
}

/* It rests after so many bytes. More than before count by a quarter: the turn may have been late.
 */
static void learn_turn(struct chunk_body *b, uint64_t n_bytes)
{
    if (b->turn_bytes == 0 || n_bytes < b->turn_bytes)
        b->turn_bytes = n_bytes;
    else
        b->turn_bytes += (n_bytes - b->turn_bytes) / 4;
}

/* The first chunks are small: a peer that opens many streams and takes little of each pins little.
 */
static uint32_t next_size(const struct chunk_body *b)
{
    bool small = b->asked < FIRST_BYTES || is_slow(b);
    return small ? NJ_CHUNK_SMALL_BYTES : NJ_CHUNK_BYTES;
}

static uint64_t end_of(const struct nj_chunk *c)
{
    return c->offset + c->n_bytes;
}

static bool covers(const struct nj_chunk *c, uint64_t offset)
{
    return offset >= c->offset && offset < end_of(c);
}

static void let_go(struct nj_chunk **c)
{
    if (*c)
        nj_ref_put(&(*c)->ref);
    *c = NULL;
}

/* Ask for what follows the current chunk, if there is more and none is on its way. False: refused.
 * With a port that answers at once, `ahead` is filled in or the body is broken when this returns.
 */
static bool ask(struct chunk_body *b)
{
    uint64_t offset = b->current ? end_of(b->current) : b->next;

    if (b->broke || b->reading || b->ahead || offset >= b->end)
        return true;
    struct nj__job *job = nj__job_take(b->files);
    if (!job)
        return false;
    uint32_t n_bytes = min_u64(b->end - offset, next_size(b));
    job->file.op = NJ_FILE_READ;
    job->file.object = b->object;
    job->file.offset = offset;
    job->file.n_bytes = n_bytes;
    job->file.n_ahead = n_bytes > NJ_CHUNK_SMALL_BYTES ? b->n_ahead : 0;
    job->file.end = b->end;
    job->file.was_read = false;
    job->file.asker = b;
    job->file.client = b->client;
    nj_ref_take(&b->object->ref);
    b->reading = job;
    if (nj__job_submit(b->files, job)) {
        b->asked += n_bytes;
        return true;
    }
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
    f->wake(b->face->waiter);
}

/* A piece is here: how many shall be read before they are asked for? One more when the body could
 * have sent, and waited for the disk. A body that its peer or its rate holds up never waits. */
static void learn_ahead(struct chunk_body *b, bool was_read)
{
    bool was_late = was_read && b->waiting && b->asked > FIRST_BYTES && !is_slow(b);

    if (was_late)
        b->n_ahead += b->n_ahead < AHEAD_MAX;
    else if (++b->n_in_time >= IN_TIME_MAX)
        b->n_ahead -= b->n_ahead > 0;
    else
        return;
    b->n_in_time = 0;
}

void nj__body_read_done(struct nj__files *f, struct nj__job *job)
{
    struct chunk_body *b = job->file.asker;
    struct nj_chunk *chunk = job->file.chunk;
    bool ok = job->file.result == NJ_FILE_OK && chunk && covers(chunk, job->file.offset);
    bool was_read = job->file.was_read;

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
    learn_ahead(b, was_read);
    wake(b);
}

/* A body is refused only while the port is full. Then a job is due to leave it, to come back or to
 * be kept, and this will be called again. Should none be out, waiting would be for ever: the body
 * breaks. */
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

/* Bytes of the current chunk that are still to be taken. */
static uint64_t left_of_current(const struct chunk_body *b)
{
    uint64_t end = end_of(b->current);

    NJ_ASSERT(covers(b->current, b->next));
    return (end < b->end ? end : b->end) - b->next;
}

/* Should the next chunk be on its way? */
static bool is_time_to_ask(const struct chunk_body *b, uint64_t n_left)
{
    return n_left <= (is_slow(b) ? b->turn_bytes + SLOW_TURN_BYTES : b->current->n_bytes / 2);
}

static int chunk_peek(struct nj_body *body, uint32_t n_max, struct nj_slice *out)
{
    struct chunk_body *b = nj_container_of(body, struct chunk_body, body);

    if (!b->current && !b->ahead)
        ask_or_starve(b);
    if (!b->current) {
        b->current = b->ahead;
        b->ahead = NULL;
    }
    if (!b->current) {
        b->waiting = !b->broke;
        return b->broke ? -1 : 0;
    }
    struct nj_chunk *c = b->current;
    uint64_t n_left = left_of_current(b);
    *out = (struct nj_slice){c->bytes + (b->next - c->offset), min_u64(n_max, n_left), &c->ref};
    return (int)out->n_bytes;
}

static void chunk_advance(struct nj_body *body, uint32_t n_bytes)
{
    struct chunk_body *b = nj_container_of(body, struct chunk_body, body);
    uint64_t n_left = left_of_current(b);

    NJ_ASSERT(b->current && n_bytes <= n_left);
    n_left -= n_bytes;
    if (is_time_to_ask(b, n_left))
        (void)ask(b); /* refused: peek will ask again when it matters */
    b->next += n_bytes;
    if (n_left == 0)
        let_go(&b->current);
}

static uint64_t chunk_remaining(const struct nj_body *body)
{
    const struct chunk_body *b = nj_container_of(body, struct chunk_body, body);

    return b->end - b->next;
}

/* A body that has become slow gives back the large chunks of its fast time, and asks for a small
 * one at once, so that the next turn finds it. This happens once, not at each rest. */
static void chunk_rest(struct nj_body *body)
{
    struct chunk_body *b = nj_container_of(body, struct chunk_body, body);

    if (b->next > b->rested_at) {
        learn_turn(b, b->next - b->rested_at);
        b->rested_at = b->next;
    }
    if (is_slow(b))
        b->n_ahead = 0;
    if (!is_slow(b) || b->reading)
        return;
    if (b->ahead && b->ahead->n_bytes > NJ_CHUNK_SMALL_BYTES)
        let_go(&b->ahead);
    if (b->ahead || !b->current || b->current->n_bytes <= NJ_CHUNK_SMALL_BYTES)
        return;
    let_go(&b->current);
    (void)ask(b);
}

/* The READ that is out. Its result, if there is to be one, goes to nobody. */
static void abandon(struct chunk_body *b)
{
    struct nj__job *job = b->reading;

    job->file.asker = NULL;
    if (!nj__job_withdraw(b->files, job))
        return;
    nj_ref_put(&job->file.object->ref);
    nj__job_put(b->files, job);
}

static void chunk_close(struct nj_body *body)
{
    struct chunk_body *b = nj_container_of(body, struct chunk_body, body);

    if (b->reading)
        abandon(b);
    nj_list_del(&b->starved);
    let_go(&b->current);
    let_go(&b->ahead);
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

static void chunk_aim(struct chunk_body *b, struct nj_range range)
{
    b->next = b->rested_at = range.first;
    b->end = range.first + range.n_bytes;
}

struct nj_body *nj__body_of_range(struct nj__files *f, struct nj_object *object,
                                  struct nj_range range, const void *client)
{
    if (object->bytes)
        return body_of_bytes(f, object->bytes + range.first, range.n_bytes, &object->ref);
    struct chunk_body *b = nj_pool_take(&f->chunk_bodies);
    if (!b)
        return NULL;
    b->body.ops = &chunk_ops;
    b->face = &b->body;
    b->files = f;
    b->object = object;
    b->client = client;
    chunk_aim(b, range);
    nj_list_init(&b->starved);
    nj_ref_take(&object->ref);
    return &b->body;
}

void nj__body_aim(struct nj_body *body, struct nj_object *object, struct nj_range range)
{
    NJ_ASSERT(body->ops->remaining(body) == 0);
    if (body->ops == &chunk_ops) {
        chunk_aim(nj_container_of(body, struct chunk_body, body), range);
        return;
    }
    struct bytes_body *b = nj_container_of(body, struct bytes_body, body);
    b->data = object->bytes + range.first;
    b->n_left = range.n_bytes;
}

void nj__body_set_face(struct nj_body *body, struct nj_body *face)
{
    if (body->ops == &chunk_ops)
        nj_container_of(body, struct chunk_body, body)->face = face;
}
